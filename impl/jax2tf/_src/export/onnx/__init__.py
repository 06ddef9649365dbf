"""ONNX files: the engine of `export`, the writer of the graph, and weights in fewer bits."""
