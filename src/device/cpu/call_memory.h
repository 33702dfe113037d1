// CallMemory: where the small objects come from that oneDNN makes within a call to it.
//
// Each of its executions makes 7 or 8 objects of some 50 bytes, some buffers besides, and
// frees them before it returns. While a CallMemory exists, `operator new` and
// posix_memalign() take them from a block that the process has for that, on its thread and
// in OpenMP's parallel regions: no lock, no search, no system call. The block is empty
// again whenever all of them were freed. What finds no room there comes from the heap, as
// everywhere else; whatever the block gave may be freed later and by any thread.
//
// Under a sanitizer all comes from the heap. A program that links this has its
// posix_memalign() and free() from here, which pass on what is not the block's.
#ifndef FOLIOT_DEVICE_CPU_CALL_MEMORY_H_
#define FOLIOT_DEVICE_CPU_CALL_MEMORY_H_

namespace foliot {

class CallMemory {
 public:
  // REQUIRES: this thread has no other.
  CallMemory();
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
};

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_CALL_MEMORY_H_
