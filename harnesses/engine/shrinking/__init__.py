"""Makes a program that goes wrong small: fewer equations, smaller shapes, plainer values.

    python -m harnesses shrink sin_float32-cpu-xla-litert
    python -m harnesses shrink package.model:predict --input 2,8:float32 --mode onnx

`programs` has programs as lists of equations that can be cut and changed, `searching` tries smaller
ones, `text` writes one as Python, and `cells` asks the judge whether one still goes wrong.
"""
