"""Models in plain JAX, as users write them: the kinds that are exported for inference."""

from tests.consumers.models import audio, images, language, other, recurrent
from tests.consumers.models.model import Model, Models

FIELDS: dict[str, Models] = {
    "images": images.MODELS,
    "language": language.MODELS,
    "recurrent": recurrent.MODELS,
    "audio": audio.MODELS,
    "other": other.MODELS,
}
MODELS: Models = {name: model for models in FIELDS.values() for name, model in models.items()}

__all__ = ["FIELDS", "MODELS", "Model", "Models"]
