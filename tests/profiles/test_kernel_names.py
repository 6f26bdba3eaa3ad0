"""The names of device kernels, as PyTorch's profiler told them of an NVIDIA H200, and as they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.profiles.kernel_names import short_kernel_name
from corral.profiles.trace_events import read_events

NATIVE = "at::native::(anonymous namespace)::"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void sgemm_largek_lds64<true, false, 5, 5, 4, 4, 4, 34>(float*, float const*, int)", "sgemm_largek_lds64"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(cutlass_80_simt_sgemm::Params)",
            "Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>",
        ),
        (
            f"void {NATIVE}multi_tensor_apply_kernel<{NATIVE}TensorListMetadata<2>, "
            f"{NATIVE}BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>({NATIVE}TensorListMetadata<2>)",
            "multi_tensor_apply_kernel<BinaryOpListAlphaFunctor>",
        ),
        (
            "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
            "at::native::sum_functor<float, float, float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>>>",
            "reduce_kernel<sum_functor>",
        ),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8", "sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize64x64x8"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Storage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("", ""),
        ("(lambda)", "(lambda)"),
    ],
)  # fmt: skip
def test_a_kernel_is_called_by_its_own_name_and_its_operation(name: str, short: str) -> None:
    assert short_kernel_name(name) == short


@given(st.text())
def test_a_short_name_is_never_longer(name: str) -> None:
    assert len(short_kernel_name(name)) <= len(name)


def test_only_kernels_have_short_names() -> None:
    span = '{"ph": "X", "ts": 1, "dur": 2, "cat": "%s", "name": "void a::b<c>(d)"}'
    found = read_events(['{"traceEvents": [', span % "kernel", ",", span % "cpu_op", "]}"])
    assert [each.name for each in found] == ["b", "void a::b<c>(d)"]
