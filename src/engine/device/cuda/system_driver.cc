// NVIDIA's driver, looked for when it is opened.
#include "engine/device/cuda/driver.h"

#ifdef FOLIOT_CUDA

#include <cuda.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "foundation/base/check.h"

// cuda.h gives some calls a newer version by a macro: the name that is looked for
// must be the expanded one.
#define FOLIOT_NAME_INNER(call) #call
#define FOLIOT_NAME(call) FOLIOT_NAME_INNER(call)

namespace foliot {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

struct Calls {
  decltype(&::cuInit) init;
  decltype(&::cuGetErrorName) error_name;
  decltype(&::cuDriverGetVersion) version;
  decltype(&::cuDeviceGetCount) count;
  decltype(&::cuDeviceGet) device;
  decltype(&::cuDeviceGetName) name;
  decltype(&::cuDeviceTotalMem) total_memory;
  decltype(&::cuDeviceGetAttribute) attribute;
  decltype(&::cuMemGetAllocationGranularity) granularity;
  decltype(&::cuMemCreate) create;
  decltype(&::cuMemRelease) release;
  decltype(&::cuMemAddressReserve) reserve;
  decltype(&::cuMemAddressFree) free;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;
};

// The first call that the library lacks; nullptr: it has all.
const char* find_calls(void* library, Calls& calls) {
  const char* missing = nullptr;
  const auto find = [&](auto& call, const char* name) {
    call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(dlsym(library, name));
    if (call == nullptr && missing == nullptr) missing = name;
  };
  find(calls.init, FOLIOT_NAME(cuInit));
  find(calls.error_name, FOLIOT_NAME(cuGetErrorName));
  find(calls.version, FOLIOT_NAME(cuDriverGetVersion));
  find(calls.count, FOLIOT_NAME(cuDeviceGetCount));
  find(calls.device, FOLIOT_NAME(cuDeviceGet));
  find(calls.name, FOLIOT_NAME(cuDeviceGetName));
  find(calls.total_memory, FOLIOT_NAME(cuDeviceTotalMem));
  find(calls.attribute, FOLIOT_NAME(cuDeviceGetAttribute));
  find(calls.granularity, FOLIOT_NAME(cuMemGetAllocationGranularity));
  find(calls.create, FOLIOT_NAME(cuMemCreate));
  find(calls.release, FOLIOT_NAME(cuMemRelease));
  find(calls.reserve, FOLIOT_NAME(cuMemAddressReserve));
  find(calls.free, FOLIOT_NAME(cuMemAddressFree));
  find(calls.map, FOLIOT_NAME(cuMemMap));
  find(calls.unmap, FOLIOT_NAME(cuMemUnmap));
  find(calls.set_access, FOLIOT_NAME(cuMemSetAccess));
  return missing;
}

CUmemLocation location_of(uint32_t gpu) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = static_cast<int>(gpu);
  return location;
}

CUmemAllocationProp memory_of(uint32_t gpu) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(gpu);
  return properties;
}

class SystemDriver final : public CudaDriver {
 public:
  explicit SystemDriver(const Calls& calls) : calls_(calls) {}

  Result<std::vector<Gpu>> gpus() override {
    int count = 0;
    FOLIOT_RETURN_IF_ERROR(check(calls_.count(&count), "cuDeviceGetCount"));
    std::vector<Gpu> gpus;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      FOLIOT_ASSIGN_OR_RETURN(Gpu gpu, describe(ordinal));
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

  Result<GpuBlock> take(uint32_t gpu, uint64_t bytes) override {
    const CUmemAllocationProp properties = memory_of(gpu);
    CUmemGenericAllocationHandle block = 0;
    FOLIOT_RETURN_IF_ERROR(check(calls_.create(&block, bytes, &properties, 0), "cuMemCreate"));
    return GpuBlock{block};
  }
  void give_back(GpuBlock block) override { FOLIOT_CHECK(calls_.release(block) == CUDA_SUCCESS); }

  Result<GpuAddress> reserve(uint64_t bytes) override {
    CUdeviceptr address = 0;
    FOLIOT_RETURN_IF_ERROR(check(calls_.reserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve"));
    return GpuAddress{address};
  }
  void release(GpuAddress address, uint64_t bytes) override {
    FOLIOT_CHECK(calls_.free(address, bytes) == CUDA_SUCCESS);
  }

  Status map(GpuAddress address, uint64_t bytes, GpuBlock block) override {
    return check(calls_.map(address, bytes, 0, block, 0), "cuMemMap");
  }
  Status allow(uint32_t gpu, GpuAddress address, uint64_t bytes) override {
    const CUmemAccessDesc access{.location = location_of(gpu), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return check(calls_.set_access(address, bytes, &access, 1), "cuMemSetAccess");
  }
  void unmap(GpuAddress address, uint64_t bytes) override {
    FOLIOT_CHECK(calls_.unmap(address, bytes) == CUDA_SUCCESS);
  }

  Status check(CUresult result, const char* call) const {
    if (result == CUDA_SUCCESS) return {};
    const char* name = nullptr;
    calls_.error_name(result, &name);
    const StatusCode code =
        result == CUDA_ERROR_OUT_OF_MEMORY ? StatusCode::kResourceExhausted : StatusCode::kUnavailable;
    return Status(code, fmt::format("{}: {}", call, name != nullptr ? name : std::to_string(result)));
  }

 private:
  Result<Gpu> describe(int ordinal) const;
  Result<uint32_t> attribute(CUdevice device, CUdevice_attribute which) const {
    int value = 0;
    FOLIOT_RETURN_IF_ERROR(check(calls_.attribute(&value, which, device), "cuDeviceGetAttribute"));
    return static_cast<uint32_t>(value);
  }

  const Calls calls_;
};

Result<Gpu> SystemDriver::describe(int ordinal) const {
  CUdevice device = 0;
  FOLIOT_RETURN_IF_ERROR(check(calls_.device(&device, ordinal), "cuDeviceGet"));
  Gpu gpu{.ordinal = static_cast<uint32_t>(ordinal)};
  char name[256] = {};
  FOLIOT_RETURN_IF_ERROR(check(calls_.name(name, sizeof name, device), "cuDeviceGetName"));
  gpu.name = name;
  size_t bytes = 0;
  FOLIOT_RETURN_IF_ERROR(check(calls_.total_memory(&bytes, device), "cuDeviceTotalMem"));
  gpu.memory_bytes = bytes;
  FOLIOT_ASSIGN_OR_RETURN(gpu.capability_major, attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  FOLIOT_ASSIGN_OR_RETURN(gpu.capability_minor, attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  FOLIOT_ASSIGN_OR_RETURN(gpu.multiprocessors, attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  FOLIOT_ASSIGN_OR_RETURN(const uint32_t maps,
                          attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  if (maps == 0) return gpu;
  const CUmemAllocationProp properties = memory_of(gpu.ordinal);
  size_t granularity = 0;
  FOLIOT_RETURN_IF_ERROR(check(calls_.granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                               "cuMemGetAllocationGranularity"));
  gpu.block_granularity = granularity;
  return gpu;
}

}  // namespace

// The library stays open: the driver does not bear being closed.
Result<std::unique_ptr<CudaDriver>> open_cuda_driver() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one for each thread
    return Status::unavailable(fmt::format("there is no NVIDIA driver ({})", reason));
  }
  Calls calls{};
  if (const char* missing = find_calls(library, calls); missing != nullptr)
    return Status::unavailable(fmt::format("NVIDIA's driver is too old: {} has no {}", kLibrary, missing));
  auto driver = std::make_unique<SystemDriver>(calls);
  FOLIOT_RETURN_IF_ERROR(driver->check(calls.init(0), "cuInit"));
  return std::unique_ptr<CudaDriver>(std::move(driver));
}

}  // namespace foliot

#else

namespace foliot {

Result<std::unique_ptr<CudaDriver>> open_cuda_driver() {
  return Status::unavailable("Foliot was built without CUDA's headers");
}

}  // namespace foliot

#endif  // FOLIOT_CUDA
