"""Pre-trained networks by name -> embeddings, and their cache."""

from calida.encoders.blocks import blocks_of
from calida.encoders.cache import Cached, EmbeddingCache, cache_folder, clear_cache, list_cache
from calida.encoders.embedding import Embedded, embed, embedding_precision, standardizing
from calida.encoders.encoder import Encoder, ImageInput, TextInput, own_encoder
from calida.encoders.named import (
    blank_encoder,
    check_encoder_name,
    install_command,
    installed_encoders,
    is_encoder_name,
    load_encoder,
)
from calida.encoders.packaged import PACKAGED, Packaged
from calida.encoders.remembered import Remembered

__all__ = [
    "PACKAGED",
    "Cached",
    "Embedded",
    "EmbeddingCache",
    "Encoder",
    "ImageInput",
    "Packaged",
    "Remembered",
    "TextInput",
    "blank_encoder",
    "blocks_of",
    "cache_folder",
    "check_encoder_name",
    "clear_cache",
    "embed",
    "embedding_precision",
    "install_command",
    "installed_encoders",
    "is_encoder_name",
    "list_cache",
    "load_encoder",
    "own_encoder",
    "standardizing",
]
