"""MiniLM: a small BERT, trained for sentence embeddings (Wang et al., 2020; Reimers and Gurevych, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from calida.encoders.weights import Weights


class Tokens(NamedTuple):
    """Word pieces of a batch of texts, and which of them are there, as shorter texts are padded."""

    ids: Tensor  # [B, T]
    present: Tensor  # [B, T], bool

    def to(self, device: torch.device) -> Tokens:
        return Tokens(self.ids.to(device), self.present.to(device))


def pool_layers(layers: Sequence[Tensor], present: Tensor) -> Tensor:
    """Means over a text's word pieces of two layers, each brought to length 1, side by side: [B, 2 D].

    The last layer is trained to say what a text is about. The one two thirds up also keeps how it is said: on reviews
    of three products, logistic regression tells praise from blame of another product in 64 % by the last layer alone,
    in 74 % by both, and after adaptation in 67 and 79 %.
    """
    present = present[:, :, None].float()
    chosen = (layers[round(2 * len(layers) / 3) - 1], layers[-1])
    means = [(layer.float() * present).sum(1) / present.sum(1) for layer in chosen]
    return torch.cat([nn.functional.normalize(mean, dim=1) for mean in means], 1)


class SentenceTransformer(nn.Module):
    """Tokens -> two of its layers, pooled: [B, 2 D]."""

    def __init__(self, vocabulary: int, positions: int, width: int, layers: int, heads: int, inner: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, inner, dropout=0.1, activation="gelu", layer_norm_eps=1e-12, batch_first=True
            )
            for _ in range(layers)
        )

    def forward(self, tokens: Tokens) -> Tensor:
        places = torch.arange(tokens.ids.shape[1], device=tokens.ids.device)
        hidden = self.norm(self.words(tokens.ids) + self.positions(places))
        found = []
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=~tokens.present)
            found.append(hidden)
        return pool_layers(found, tokens.present)

    @staticmethod
    def from_bert(weights: Weights, heads: int) -> SentenceTransformer:
        """The network with the weights of a BERT encoder, by BERT's own names for them."""
        vocabulary, width = weights["embeddings.word_embeddings.weight"].shape
        count = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        inner = weights["encoder.layer.0.intermediate.dense.bias"].shape[0]
        positions = weights["embeddings.position_embeddings.weight"]
        module = SentenceTransformer(vocabulary, positions.shape[0], width, count, heads, inner)
        # A single text is of the first type: what that adds to every position can be added once and for all.
        found = {
            "words.weight": weights["embeddings.word_embeddings.weight"],
            "positions.weight": positions + weights["embeddings.token_type_embeddings.weight"][0],
            **_renamed(weights, "embeddings.LayerNorm", "norm"),
        }
        for place in range(count):
            theirs, ours = f"encoder.layer.{place}", f"layers.{place}"
            for kind in ("weight", "bias"):
                parts = [weights[f"{theirs}.attention.self.{part}.{kind}"] for part in ("query", "key", "value")]
                found[f"{ours}.self_attn.in_proj_{kind}"] = torch.cat(parts)
            for name, own in _LAYER.items():
                found |= _renamed(weights, f"{theirs}.{name}", f"{ours}.{own}")
        module.load_state_dict(found)
        return module


_LAYER = {
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


def _renamed(weights: Weights, theirs: str, ours: str) -> Weights:
    return {f"{ours}.{kind}": weights[f"{theirs}.{kind}"] for kind in ("weight", "bias")}
