"""Pre-trained networks by name -> embeddings, and their cache."""

from calida.encoders.cache import Cached, EmbeddingCache, cache_folder, clear_cache, list_cache
from calida.encoders.embedding import Embedded, embed, embedding_precision
from calida.encoders.encoder import Encoder, ImageInput, TextInput, own_encoder
from calida.encoders.named import check_encoder_name, install_command, installed_encoders, load_encoder
from calida.encoders.packaged import PACKAGED, Packaged

__all__ = [
    "PACKAGED",
    "Cached",
    "Embedded",
    "EmbeddingCache",
    "Encoder",
    "ImageInput",
    "Packaged",
    "TextInput",
    "cache_folder",
    "check_encoder_name",
    "clear_cache",
    "embed",
    "embedding_precision",
    "install_command",
    "installed_encoders",
    "list_cache",
    "load_encoder",
    "own_encoder",
]
