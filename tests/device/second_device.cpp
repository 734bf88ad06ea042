// Two devices in ordinary memory, in torch's open slot for devices (PrivateUse1).
//
// Torch keeps their tensors apart from the CPU's and from each other's, as it does with CUDA. The
// kernels are the CPU's: operators without one here copy their inputs to the CPU, run there and
// copy the results back. Copies and reads that the program asks for are counted.

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_coalesce.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::IntArrayRef;
using std::optional;

constexpr auto KIND = c10::DeviceType::PrivateUse1;
constexpr auto KEYS = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
constexpr DeviceIndex COUNT = 2;
constexpr int64_t MEMORY = int64_t(8) << 30;

// ---- what the tests read --------------------------------------------------------------------

struct Counters {
  std::atomic<int64_t> to_host{0}, from_host{0}, across{0}, scalars{0}, waits{0};
};
Counters counters;
std::mutex names_mutex;
std::map<std::string, int64_t> fallbacks;  // operator -> calls
std::set<std::string> refused_dtypes;
thread_local int inside = 0;  // copies of the kernels themselves are not the program's

struct Inside {
  Inside() { ++inside; }
  ~Inside() { --inside; }
};

// ---- memory ---------------------------------------------------------------------------------

std::array<std::atomic<int64_t>, COUNT> live{}, peak{};
thread_local DeviceIndex current = 0;

struct Block {
  void* data;
  int64_t bytes;
  DeviceIndex device;
};

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  live[block->device] -= block->bytes;
  c10::free_cpu(block->data);
  delete block;
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const Device device(KIND, current);
    if (bytes == 0) return {nullptr, device};
    const int64_t now = live[current] += static_cast<int64_t>(bytes);
    if (now > MEMORY) {
      live[current] -= static_cast<int64_t>(bytes);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "second device ", int(current),
                       " out of memory: tried to allocate ", bytes, " bytes");
    }
    int64_t before = peak[current];
    while (now > before && !peak[current].compare_exchange_weak(before, now)) {
    }
    auto* block = new Block{c10::alloc_cpu(bytes), static_cast<int64_t>(bytes), current};
    return {block->data, block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
};
DeviceMemory device_memory;
REGISTER_ALLOCATOR(KIND, &device_memory);

std::mutex pinned_mutex;
std::set<void*> pinned;

void unpin(void* data) {
  {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned.erase(data);
  }
  c10::free_cpu(data);
}

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned.insert(data);
    return {data, data, &unpin, Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* target, const void* source, std::size_t count) const override {
    default_copy_data(target, source, count);
  }
};
PinnedMemory pinned_memory;

// ---- devices, streams, random numbers -------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return KIND; }
  Device exchangeDevice(Device device) const override {
    const Device before(KIND, current);
    setDevice(device);
    return before;
  }
  Device getDevice() const override { return Device(KIND, current); }
  void setDevice(Device device) const override {
    TORCH_CHECK(device.index() < COUNT, "there are two devices, asked for ", device);
    if (device.has_index()) current = device.index();
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) current = device.index();
  }
  c10::Stream getStream(Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, device.has_index() ? device : getDevice());
  }
  c10::Stream getDefaultStream(Device device) const override { return getStream(device); }
  c10::Stream getNewStream(Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getStream(device);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return getStream(stream.device());
  }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  DeviceIndex deviceCount() const noexcept override { return COUNT; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { ++counters.waits; }
  void synchronizeEvent(void*) const override { ++counters.waits; }
  void synchronizeDevice(const DeviceIndex) const override { ++counters.waits; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// A generator of a device: the CPU's numbers, a state of its own.
struct DeviceGenerator final : c10::GeneratorImpl {
  at::Generator host;
  explicit DeviceGenerator(DeviceIndex index)
      : c10::GeneratorImpl(Device(KIND, index), KEYS), host(at::detail::createCPUGenerator()) {}
  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host.set_offset(offset); }
  uint64_t get_offset() const override { return host.get_offset(); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return host.seed(); }
  void set_state(const c10::TensorImpl& state) override { host.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  DeviceGenerator* clone_impl() const override {
    auto* copy = new DeviceGenerator(device_.index());
    copy->host = host.clone();
    return copy;
  }
};

const at::Generator& default_generator(DeviceIndex index) {
  static std::array<at::Generator, COUNT> generators = {
      at::make_generator<DeviceGenerator>(DeviceIndex(0)),
      at::make_generator<DeviceGenerator>(DeviceIndex(1))};
  return generators.at(index < 0 ? current : index);
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return COUNT; }
  void setCurrentDevice(DeviceIndex index) const override { Guard().setDevice(Device(KIND, index)); }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    return Guard().exchangeDevice(Device(KIND, index)).index();
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override {
    return index < 0 ? current : exchangeDevice(index);
  }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    return default_generator(index);
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<DeviceGenerator>(index < 0 ? current : index);
  }
  Device getDeviceFromPtr(void*) const override { return Device(KIND, current); }
  bool isPinnedPtr(const void* data) const override {
    std::lock_guard<std::mutex> lock(pinned_mutex);
    return pinned.count(const_cast<void*>(data)) > 0;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    auto data = device_memory.allocate(bytes);
    std::memcpy(data.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(data));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};

// ---- kernels --------------------------------------------------------------------------------

// The CPU's view of a tensor's memory.
Tensor on_host(const Tensor& tensor) {
  if (!tensor.is_privateuseone()) return tensor;
  auto host = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                            tensor.options().device(c10::DeviceType::CPU));
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

optional<Tensor> on_host(const optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? optional<Tensor>(on_host(*tensor)) : std::nullopt;
}

Device check(optional<Device> device, optional<c10::ScalarType> dtype) {
  const auto name = c10::toString(dtype.value_or(c10::ScalarType::Float));
  TORCH_CHECK_TYPE(!refused_dtypes.count(name), "the second device does not support ", name);
  return device && device->has_index() ? *device : Device(KIND, current);
}

Tensor empty(IntArrayRef size, optional<c10::ScalarType> dtype, optional<c10::Layout>,
             optional<Device> device, optional<bool>, optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(check(device, dtype));
  return at::detail::empty_generic(size, &device_memory, KEYS,
                                   dtype.value_or(c10::ScalarType::Float), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, optional<c10::ScalarType> dtype,
                     optional<c10::Layout>, optional<Device> device, optional<bool>) {
  const c10::DeviceGuard guard(check(device, dtype));
  return at::detail::empty_strided_generic(size, stride, &device_memory, KEYS,
                                           dtype.value_or(c10::ScalarType::Float));
}

const Tensor& resize(const Tensor& self, IntArrayRef size, optional<c10::MemoryFormat> format) {
  const c10::DeviceGuard guard(self.device());
  return at::native::resize_(self, size, format);
}

Tensor to_device(const Tensor& host, Device device) {
  auto result = empty_strided(host.sizes(), host.strides(), host.scalar_type(), std::nullopt,
                              device, std::nullopt);
  on_host(result).copy_(host);
  return result;
}

Tensor copy_from(const Tensor& self, const Tensor& target, bool) {
  if (!inside) {
    if (target.is_cpu()) {
      ++counters.to_host;
    } else if (self.is_cpu()) {
      ++counters.from_host;
    } else if (self.device() != target.device()) {
      ++counters.across;
    }
  }
  on_host(target).copy_(on_host(self));
  return target;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

at::Scalar local_scalar(const Tensor& self) {
  if (!inside) ++counters.scalars;
  return at::_local_scalar_dense(on_host(self));
}

Tensor convolution(const Tensor& input, const Tensor& weight, const optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                   IntArrayRef output_padding, int64_t groups) {
  TORCH_CHECK(input.device() == weight.device(), "convolution: data on ", input.device(),
              ", weight on ", weight.device());
  return to_device(at::convolution(on_host(input), on_host(weight), on_host(bias), stride, padding,
                                   dilation, transposed, output_padding, groups),
                   input.device());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, IntArrayRef stride,
    IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> mask) {
  const int64_t width = transposed ? weight.size(1) * groups : weight.size(0);
  auto grads = at::convolution_backward(on_host(grad), on_host(input), on_host(weight),
                                        IntArrayRef{width}, stride, padding, dilation, transposed,
                                        output_padding, groups, mask);
  auto back = [&](const Tensor& t) { return t.defined() ? to_device(t, input.device()) : t; };
  return {back(std::get<0>(grads)), back(std::get<1>(grads)), back(std::get<2>(grads))};
}

// Sparse tensors, of which torch makes the gradients of embeddings, are two dense ones.
Tensor sparse_on_host(const Tensor& sparse) {
  auto host = at::_sparse_coo_tensor_unsafe(on_host(sparse._indices()), on_host(sparse._values()),
                                            sparse.sizes());
  return host._coalesced_(sparse.is_coalesced());
}

Tensor sparse_to_device(const Tensor& host, Device device) {
  auto sparse = at::_sparse_coo_tensor_unsafe(to_device(host._indices(), device),
                                              to_device(host._values(), device), host.sizes());
  return sparse._coalesced_(host.is_coalesced());
}

Tensor sparse_of_parts(int64_t sparse_dim, int64_t dense_dim, c10::SymIntArrayRef size,
                       const Tensor& indices, const Tensor& values,
                       optional<c10::ScalarType> dtype, optional<c10::Layout> layout,
                       optional<Device> device, optional<bool> pin, optional<bool> coalesced) {
  const c10::DeviceGuard guard(values.device());
  return at::native::new_with_dims_and_tensor_sparse_symint(
      sparse_dim, dense_dim, size, indices, values, dtype, layout, device, pin, coalesced);
}

Tensor sparse_of_dims(int64_t sparse_dim, int64_t dense_dim, IntArrayRef size,
                      optional<c10::ScalarType> dtype, optional<c10::Layout> layout,
                      optional<Device> device, optional<bool> pin) {
  const c10::DeviceGuard guard(check(device, dtype));
  return at::native::new_with_dims_sparse(sparse_dim, dense_dim, size, dtype, layout, device, pin);
}

Tensor coalesce(const Tensor& self) {
  return sparse_to_device(at::_coalesce(sparse_on_host(self)), self.device());
}

Tensor add_sparse(const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
  TORCH_CHECK(self.device() == other.device(), "add: ", self.device(), " and ", other.device());
  if (!self.is_sparse()) {
    return to_device(at::add(on_host(self), sparse_on_host(other), alpha), self.device());
  }
  return sparse_to_device(at::add(sparse_on_host(self), sparse_on_host(other), alpha),
                          self.device());
}

Tensor to_dense(const Tensor& self, optional<c10::ScalarType> dtype, optional<bool>) {
  return to_device(sparse_on_host(self).to_dense(dtype), self.device());
}

// ---- everything else ------------------------------------------------------------------------

// What CUDA's kernels take from the CPU: numbers as 0-dimensional tensors, and indices.
bool may_be_on_host(const std::string& name, const Tensor& tensor) {
  return tensor.dim() == 0 || name.rfind("aten::index", 0) == 0 ||
         name.rfind("aten::_index_put_impl", 0) == 0;
}

// CUDA has no products of integers, which the CPU's kernels have.
bool is_product(const std::string& name) {
  static const std::set<std::string> names = {"aten::mm",  "aten::addmm",   "aten::bmm",
                                              "aten::mv",  "aten::addmv",   "aten::dot",
                                              "aten::vdot", "aten::baddbmm", "aten::addbmm"};
  return names.count(name) > 0;
}

struct SameDevice {
  const std::string& name;
  optional<Device> device;
  bool has_host = false;

  void meet(const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.is_cpu()) {
      has_host = has_host || !may_be_on_host(name, tensor);
      return;
    }
    TORCH_CHECK(!device || *device == tensor.device(), "Expected all tensors to be on the same ",
                "device, but ", name, " got ", *device, " and ", tensor.device());
    device = tensor.device();
    TORCH_CHECK(c10::isFloatingType(tensor.scalar_type()) ||
                    c10::isComplexType(tensor.scalar_type()) || !is_product(name),
                "\"addmm_cuda\" not implemented for '", tensor.scalar_type(), "'");
  }
  void meet(const c10::IValue& value) {
    if (value.isTensor()) return meet(value.toTensor());
    if (value.isTensorList()) {
      for (const Tensor& tensor : value.toTensorVector()) meet(tensor);
    } else if (value.isOptionalTensorList()) {
      for (const optional<Tensor>& tensor : value.toOptionalTensorVector()) {
        if (tensor) meet(*tensor);
      }
    }
  }
};

// Replaces the device's generators, given or implied, by the CPU's that hold their numbers.
void swap_generators(const c10::FunctionSchema& schema, torch::jit::Stack* stack, Device device) {
  const auto& arguments = schema.arguments();
  const size_t first = stack->size() - arguments.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto type = arguments[i].type();
    const bool is_generator =
        type->kind() == c10::TypeKind::GeneratorType ||
        (type->kind() == c10::TypeKind::OptionalType &&
         type->containedType(0)->kind() == c10::TypeKind::GeneratorType);
    if (!is_generator) continue;
    auto& value = (*stack)[first + i];
    at::Generator generator = value.isNone() ? default_generator(device.index()) : value.toGenerator();
    TORCH_CHECK(generator.device() == device, "a generator of ", generator.device(),
                " was given for a tensor on ", device);
    value = static_cast<DeviceGenerator*>(generator.unsafeGetGeneratorImpl())->host;
  }
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::string name = schema.name();
  SameDevice devices{name};
  for (const auto& value : torch::jit::last(*stack, schema.arguments().size())) devices.meet(value);
  TORCH_CHECK(!devices.device || !devices.has_host, "Expected all tensors to be on the same ",
              "device, but ", name, " got the CPU and ", *devices.device);
  const Device device = devices.device.value_or(Device(KIND, current));
  {
    std::lock_guard<std::mutex> lock(names_mutex);
    ++fallbacks[schema.overload_name().empty() ? name : name + "." + schema.overload_name()];
  }
  swap_generators(schema, stack, device);
  const Inside mark;
  const c10::DeviceGuard guard(device);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  m.impl("resize_", &resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", static_cast<Tensor (*)(const Tensor&, IntArrayRef)>(&at::native::view));
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", &sparse_of_parts);
  m.impl("_sparse_coo_tensor_with_dims", &sparse_of_dims);
  m.impl("_indices", &at::native::_indices_sparse);
  m.impl("_values", &at::native::_values_sparse);
  m.impl("indices", &at::native::indices_sparse);
  m.impl("values", &at::native::values_sparse);
  m.impl("_nnz", &at::native::_nnz_sparse);
  m.impl("sparse_dim", &at::native::sparse_dim_sparse);
  m.impl("dense_dim", &at::native::dense_dim_sparse);
  m.impl("is_coalesced", &at::native::is_coalesced_sparse);
  m.impl("_coalesced_", &at::native::_coalesced_sparse_);
  m.impl("clone", &at::native::clone_sparse);
  m.impl("copy_sparse_to_sparse_", &at::native::copy_sparse_);
  m.impl("_coalesce", &coalesce);
  m.impl("add.Tensor", &add_sparse);
  m.impl("_to_dense", &to_dense);
}

// ---- for tests/device/second_device.py ------------------------------------------------------

std::vector<int64_t> counts() {
  return {counters.to_host, counters.from_host, counters.across, counters.scalars, counters.waits};
}

void reset() {
  counters.to_host = counters.from_host = counters.across = counters.scalars = counters.waits = 0;
  for (DeviceIndex i = 0; i < COUNT; ++i) peak[i] = live[i].load();
  std::lock_guard<std::mutex> lock(names_mutex);
  fallbacks.clear();
}

std::vector<std::string> operators() {
  std::lock_guard<std::mutex> lock(names_mutex);
  std::vector<std::string> names;
  for (const auto& row : fallbacks) names.push_back(row.first);
  return names;
}

TORCH_LIBRARY(second_device, m) {
  m.def("register_hooks", [] { at::RegisterPrivateUse1HooksInterface(new Hooks); });
  m.def("device_count", []() -> int64_t { return COUNT; });
  m.def("current_device", []() -> int64_t { return current; });
  m.def("set_device", [](int64_t index) { Guard().setDevice(Device(KIND, DeviceIndex(index))); });
  m.def("synchronize", [] { ++counters.waits; });
  m.def("seed", [](int64_t index, int64_t seed) {
    auto generator = default_generator(DeviceIndex(index));
    generator.set_current_seed(static_cast<uint64_t>(seed));
  });
  m.def("get_state", [](int64_t index) {
    return Tensor::wrap_tensor_impl(
        default_generator(DeviceIndex(index)).unsafeGetGeneratorImpl()->get_state());
  });
  m.def("set_state", [](int64_t index, const Tensor& state) {
    default_generator(DeviceIndex(index)).unsafeGetGeneratorImpl()->set_state(
        *state.unsafeGetTensorImpl());
  });
  m.def("memory", [](int64_t index) -> std::vector<int64_t> {
    return {live.at(index), peak.at(index), MEMORY};
  });
  m.def("counts", &counts);
  m.def("reset", &reset);
  m.def("operators", &operators);
  m.def("refuse", [](std::string dtype, bool refuse) {
    if (refuse) {
      refused_dtypes.insert(dtype);
    } else {
      refused_dtypes.erase(dtype);
    }
  });
}

}  // namespace
