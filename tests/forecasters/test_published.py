"""Each forecaster against what is known of it: parameter counts, identities, symmetries, another implementation."""

import pytest
import torch

from rdjepa import forecasters
from rdjepa.forecasters import cnext_unet, fno, lno, no_latent, revit, riesz_no
from rdjepa.forecasters.fourier import DenseSpectralConvolution, real_inverse
from rdjepa.models.decoder import Decoder


def count(model):
    return sum(p.numel() for p in model.parameters())


def published(model):
    """Parameters with a complex one, stored as a pair, counted once."""
    pairs = ("spectral", "layer.poles", "layer.residues")
    return sum(
        p.numel() // 2 if name.startswith(pairs) and p.shape[-1] == 2 else p.numel()
        for name, p in model.named_parameters()
    )


def on_meta(name, preset="paper"):
    with torch.device("meta"):
        return forecasters.build(name, preset)


def test_parameter_counts():
    assert count(on_meta("cnext-unet")) == 18_574_594
    assert published(on_meta("fno")) == 113_496_650
    assert published(on_meta("lno")) == 65_738
    assert published(on_meta("riesz-no")) == 173_645
    with torch.device("meta"):
        assert count(Decoder(512, 96)) == 20_536_482
    assert count(on_meta("no-latent")) == 20_536_482 + 560_708
    assert 73e6 < count(on_meta("revit")) < 75e6


def test_counts_at_the_papers_own_input_and_output():
    """One field and two coordinates in, one field out: 64,241 for the Laplace operator, 172,232 for Riesz."""
    for model, expected in (
        (lno.LNO(lno.Config(grid=16)), 64_241),
        (riesz_no.RieszNO(riesz_no.Config(grid=16)), 172_232),
    ):
        width, readout = model.config.width, model.config.readout
        model.lift = torch.nn.Conv2d(3, width, 1)
        model.head = torch.nn.Conv2d(readout, 1, 1)
        assert published(model) == expected


def test_the_real_inverse_is_the_librarys_on_the_cpu():
    spectrum = torch.randn(2, 3, 8, 5, dtype=torch.complex64)
    torch.testing.assert_close(real_inverse(spectrum, (8, 8)), torch.fft.irfft2(spectrum, s=(8, 8)))


def test_spectral_convolution_filters_modes_one_by_one():
    """A single kept mode of a single channel comes out multiplied by its own weight, and a higher one vanishes."""
    layer = DenseSpectralConvolution(1, 3, 2, 3)
    weight = torch.view_as_complex(layer.weight.detach())[0, 0]
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    for ky, row in ((2, 2), (-1, 4)):
        phase = 2 * torch.pi * (ky * y + 1 * x) / 16
        out = layer(phase.cos()[None, None])[0, 0]
        w = weight[row, 1]
        torch.testing.assert_close(out, w.real * phase.cos() - w.imag * phase.sin(), atol=1e-5, rtol=1e-4)
    assert layer((2 * torch.pi * 5 * x / 16).cos()[None, None]).abs().max() < 1e-5


def test_the_factorized_laplace_layer_equals_its_dense_definition():
    torch.manual_seed(0)
    width, poles, n = 3, 2, 6
    layer = lno.PoleResidue(width, poles)
    with torch.no_grad():
        for p in layer.parameters():
            p.mul_(width**2)  # poles of order one, so that every term counts
    v = torch.randn(2, width, n, n)
    p1, p2, residues = (torch.view_as_complex(p.detach()) for p in (layer.poles_1, layer.poles_2, layer.residues))
    omega = 2 * torch.pi * torch.fft.fftfreq(n, 1 / (n - 1))
    alpha = torch.fft.fft2(v)
    first = 1 / (1j * omega[None, None, :, None] - p1[:, :, None])  # i o x m
    second = 1 / (1j * omega[None, None, :, None] - p2[:, :, None])
    dense = first[:, :, :, None, :, None] * second[:, :, None, :, None, :] * residues[:, :, None, None]  # i o x y m n
    steady = torch.fft.ifft2(torch.einsum("bixy,ioxymn->boxy", alpha, dense)).real
    rho = torch.einsum("bixy,ioxymn->bomn", alpha, dense)
    t = torch.linspace(0, 1, n)
    waves = torch.exp(p1[:, :, :, None, None, None] * t[:, None]) * torch.exp(
        p2[:, :, None, :, None, None] * t[None, :]
    )  # o c m n x y
    transient = torch.einsum("bomn,ocmnxy->bcxy", rho, waves).real / n**2
    torch.testing.assert_close(layer(v).detach(), steady + transient, rtol=1e-4, atol=1e-4)


def test_riesz_transforms_conserve_the_energy_of_a_field_without_mean():
    multipliers = riesz_no.riesz_multipliers(16, 16)
    size = multipliers.square().sum(0)
    assert size[0, 0] == 0
    torch.testing.assert_close(size.flatten()[1:], torch.ones(size.numel() - 1))


def test_revit_turns_with_its_input_and_varies_within_a_patch():
    torch.manual_seed(0)
    model = revit.ReViT(revit.Config(16, (1, 2, 1, 2, 1), heads=2, window=2, grid=32)).double()
    x = torch.randn(1, 4, 2, 32, 32, dtype=torch.double)
    with torch.no_grad():
        out = model(x)
        for turns in (1, 2, 3):
            turned = model(x.rot90(turns, (-2, -1)))
            assert (turned - out.rot90(turns, (-2, -1))).abs().max() < 1e-5 * out.abs().max()
        assert (model(x.flip(-1)) - out.flip(-1)).abs().max() > 1e-3 * out.abs().max()  # a mirror is no turn
    within = out[0, 0, 0].reshape(8, 4, 8, 4).std(dim=(1, 3)).mean()
    assert within > 0.1 * out.std()


@pytest.mark.parametrize("preset", ["nano", "paper"])
def test_no_border_of_revits_windows_is_a_border_in_every_block(preset):
    """At every scale with more than one window some blocks have them shifted by half a window, and some do not."""
    with torch.device("meta"):
        model = revit.ReViT(revit.PRESETS[preset])
    window = model.config.window
    for number in (0, 1):  # scales; the encoder's stage, then the decoder's
        assert model.config.grid // model.config.patch >> number > window
        blocks = [*model.stages[number].children(), *model.stages[4 - number].children()]
        shifts = {block.shift for block in blocks}
        assert shifts == {0, window // 2}


def test_a_skip_connection_of_cnext_unet_has_what_enters_the_blocks_of_its_scale():
    model = cnext_unet.CNextUNet(cnext_unet.Config(4, 3, layer_scale=0.1, grid=16))
    seen = {}
    for scale in (1, 2):
        model.encoder[scale].register_forward_pre_hook(lambda _, x, scale=scale: seen.update({scale: x[0]}))
        model.skip[2 - scale].register_forward_pre_hook(lambda _, x, scale=scale: seen.update({-scale: x[0]}))
    model(torch.randn(1, 4, 2, 16, 16))
    for scale in (1, 2):
        torch.testing.assert_close(seen[-scale].chunk(2, dim=1)[1], seen[scale])


def test_frames_are_orthonormal_and_fall_back_to_the_grid():
    frames = revit.frames(torch.tensor([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]]))
    torch.testing.assert_close(frames.transpose(-1, -2) @ frames, torch.eye(2).expand(3, 2, 2))
    torch.testing.assert_close(frames[1], torch.eye(2))
    vectors = torch.randn(3, 5, 2)
    torch.testing.assert_close(revit.to_global(revit.to_local(vectors, frames), frames), vectors)


def test_the_control_without_latents_sees_the_newest_frame_only():
    model = forecasters.build("no-latent", no_latent.Config(16, 8, grid=32), seed=0).eval()
    a = torch.randn(1, 4, 2, 32, 32)
    b = torch.cat([torch.randn(1, 3, 2, 32, 32), a[:, 3:]], dim=1)
    with torch.no_grad():
        assert torch.equal(model(a), model(b))


def test_fno_equals_the_spectral_convolution_of_neuraloperator():
    neuralop = pytest.importorskip("neuralop.layers.spectral_convolution", reason="install neuraloperator")
    theirs = neuralop.SpectralConv(4, 4, (6, 6), bias=False, fft_norm="backward")
    ours = DenseSpectralConvolution(4, 3, 3, 4)
    weight = theirs.weight.to_tensor() if hasattr(theirs.weight, "to_tensor") else theirs.weight
    with torch.no_grad():
        # theirs are centered: rows -3, -2, -1, 0, 1, 2; ours begin at zero
        ours.weight.copy_(torch.view_as_real(torch.cat([weight[:, :, 3:], weight[:, :, :3]], dim=2)))
    x = torch.randn(2, 4, 16, 16)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-4, atol=1e-4)


def test_fno_conventions_keep_the_modes_that_they_name():
    li = fno.FNO(fno.Config(4, 1, 6, grid=32)).spectral[0]
    other = fno.FNO(fno.Config(4, 1, 6, "neuralop", grid=32)).spectral[0]
    assert (li.positive, li.negative, li.columns) == (6, 6, 6)
    assert (other.positive, other.negative, other.columns) == (3, 3, 4)
