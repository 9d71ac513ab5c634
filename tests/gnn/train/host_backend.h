#pragma once

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <cstdlib>
#include <cstring>

// A libtorch device in host memory, for tests. Its tensors are not CPU tensors, and an operation
// that receives both fails, as on a real device. All operations are computed by the CPU
// implementation. Include it in one file of a binary only.

namespace rhizome::testing {

inline torch::Device HostBackend() { return {c10::DeviceType::PrivateUse1, 0}; }

struct HostBackendGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1> {
  c10::Device exchangeDevice(c10::Device) const override { return HostBackend(); }
  c10::Device getDevice() const override { return HostBackend(); }
  c10::Stream getStream(c10::Device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, HostBackend());
  }
  c10::Stream exchangeStream(c10::Stream) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, HostBackend());
  }
};

struct HostBackendHooks final : at::PrivateUse1HooksInterface {
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

/// Registers the device with libtorch's autograd.
inline bool RegisterHostBackend() {
  static HostBackendHooks hooks;
  c10::register_privateuse1_backend("host");
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}
inline const bool kHostBackendIsRegistered = RegisterHostBackend();

inline at::Tensor EmptyOnHostBackend(at::IntArrayRef size, at::IntArrayRef stride,
                                     std::optional<at::ScalarType> type) {
  const at::ScalarType made = type.value_or(at::kFloat);
  std::int64_t last = 0;
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (size[d] == 0) last = -1;
    if (last >= 0) last += (size[d] - 1) * stride[d];
  }
  const std::size_t bytes = static_cast<std::size_t>(last + 1) * c10::elementSize(made);
  void* const memory = std::malloc(bytes + 64);
  std::memset(memory, 0xA5, bytes + 64);  // uninitialised memory must not be read
  return at::for_blob(memory, size)
      .strides(stride)
      .deleter([](void* at) { std::free(at); })
      .options(at::TensorOptions(made).device(HostBackend()))
      .target_device(HostBackend())
      .make_tensor();
}

inline at::Tensor EmptyDense(at::IntArrayRef size, std::optional<at::ScalarType> type,
                             std::optional<at::Layout>, std::optional<at::Device>,
                             std::optional<bool>, std::optional<at::MemoryFormat>) {
  std::vector<std::int64_t> stride(size.size(), 1);
  for (std::size_t d = size.size(); d-- > 1;)
    stride[d - 1] = stride[d] * std::max<std::int64_t>(size[d], 1);
  return EmptyOnHostBackend(size, stride, type);
}

inline at::Tensor EmptyStrided(at::IntArrayRef size, at::IntArrayRef stride,
                               std::optional<at::ScalarType> type, std::optional<at::Layout>,
                               std::optional<at::Device>, std::optional<bool>) {
  return EmptyOnHostBackend(size, stride, type);
}

/// Returns a CPU tensor of the same memory.
inline at::Tensor OnProcessor(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

inline at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool) {
  OnProcessor(to).copy_(OnProcessor(from));
  return to;
}

inline at::Tensor CopyFromAndResize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) {
    const at::Tensor larger = EmptyDense(from.sizes(), to.scalar_type(), {}, {}, {}, {});
    to.unsafeGetTensorImpl()->set_storage_keep_dtype(larger.storage());
    to.unsafeGetTensorImpl()->set_sizes_contiguous(from.sizes());
  }
  return CopyFrom(from, to, false);
}

/// Runs an operation on the CPU. Fails if a tensor argument other than a scalar is a CPU tensor.
inline void RunOnProcessor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t arguments = op.schema().arguments().size();
  const auto check = [&](const at::Tensor& tensor) {
    TORCH_CHECK(!tensor.defined() || tensor.dim() == 0 || !tensor.is_cpu(), "mixed devices in ",
                op.schema().name());
  };
  for (std::size_t i = stack->size() - arguments; i < stack->size(); ++i) {
    const c10::IValue& value = (*stack)[i];
    if (value.isTensor()) check(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) check(tensor);
  }
  // The operation's schema does not say that it writes the running statistics.
  if (op.schema().name() == "aten::native_batch_norm") {
    for (const std::size_t argument : {3, 4}) {
      c10::IValue& value = (*stack)[stack->size() - arguments + argument];
      if (value.isTensor() && value.toTensor().defined()) value = OnProcessor(value.toTensor());
    }
  }
  at::native::cpu_fallback(op, stack);
}

}  // namespace rhizome::testing

C10_REGISTER_GUARD_IMPL(PrivateUse1, rhizome::testing::HostBackendGuard)

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&rhizome::testing::RunOnProcessor>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &rhizome::testing::EmptyDense);
  m.impl("empty_strided", &rhizome::testing::EmptyStrided);
  m.impl("_copy_from", &rhizome::testing::CopyFrom);
  m.impl("_copy_from_and_resize", &rhizome::testing::CopyFromAndResize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view",
         static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view));
}
