"""What of GPflow's programs is not equal to TensorFlow's, and why."""

from __future__ import annotations

from tests.substrates.libraries.differences import NO_DERIVATIVES, Difference
from tests.substrates.libraries.programs import GRAD, JAX, JIT, NUMPY, VMAP

DIFFERENCES = [
    NO_DERIVATIVES,
    Difference(
        "TensorFlow's own erf of an infinite float64 is NaN; SciPy's and JAX's are 1 and -1",
        (NUMPY, JAX),
        "^differs by nan",
        ("likelihoods.Ordinal",),
    ),
    Difference(
        "makes an array of NumPy of a parameter, which JAX traces",
        (JIT, GRAD, VMAP),
        "^TracerArrayConversionError",
        ("likelihoods.Ordinal",),
    ),
    Difference(
        "reads the number of a parameter that it makes, which JAX traces",
        (JIT, GRAD, VMAP),
        "^TracerArrayConversionError",
        (
            "kernels.AnisotropicStationary",
            "kernels.AnisotropicStationary, of points with themselves",
        ),
    ),
    Difference(
        "np.atleast_1d of a tensor is a tensor on NumPy, of its dtype; TensorFlow's is a plain"
        " array, which is cast",
        (NUMPY,),
        "^ValueError: Tensor conversion requested dtype float64 for Tensor with dtype float32",
        ("models.BayesianGPLVM",),
    ),
    Difference(
        "tf.Module finds its parameters in another order than TensorFlow's does",
        (JAX,),
        r"^float64\(2,\), TensorFlow has float64\(6, 1\)",
        ("models.VGP, gradients of its loss",),
    ),
    Difference(
        "takes the number of points from a variable, which JAX traces",
        (JIT, GRAD, VMAP),
        "^UnknownValueError: A shape must be known",
        ("models.VGP", "models.VGP, gradients of its loss"),
    ),
    Difference(
        "asks in Python for a traced number, where TensorFlow's autograph makes a loop",
        (JIT,),
        "^TracerBoolConversionError",
        ("models.CGLB, gradients of its loss",),
    ),
    Difference(
        "assigns variables within a function that JAX traces",
        (JAX,),
        "^StatefulError: tf.Variable.assign",
        ("optimizers.Scipy",),
    ),
    Difference(
        "is an optimizer of Keras, which the substrates do not have",
        (JAX,),
        "^NotImplementedError: .* needs Keras",
        ("optimizers.NaturalGradient",),
    ),
    Difference(
        "how many points are in a part depends on the values",
        (JIT, GRAD, VMAP),
        "^UnknownValueError: The partitions of tf.dynamic_partition",
        ("functions.SwitchedFunction",),
    ),
    Difference(
        "divides a parameter by a parameter, of which an array of JAX knows no quotient",
        (JAX, JIT, GRAD, VMAP),
        r"^TypeError: unsupported operand type\(s\) for /: 'Parameter' and 'Parameter'",
        ("inducing_variables.InducingPatches",),
    ),
]
