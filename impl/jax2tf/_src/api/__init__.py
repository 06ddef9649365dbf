"""The functions and classes that users call, and the errors that they get."""
