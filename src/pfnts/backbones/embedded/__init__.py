"""The causal prior-data fitted network that ships with the package."""

from pfnts.backbones.embedded.backbone import EmbeddedBackbone

__all__ = ["EmbeddedBackbone"]
