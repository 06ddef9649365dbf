"""What every part of the package uses and what is about no part of it."""
