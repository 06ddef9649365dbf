"""Programs for the devices of a mesh, and the collectives between them."""
