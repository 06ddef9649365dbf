"""What libraries for TensorFlow take of distutils, which Python 3.12 no longer has."""
