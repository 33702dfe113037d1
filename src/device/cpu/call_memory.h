// CallMemory: where the small objects come from that oneDNN makes within a call to it.
//
// Each of its executions makes 7 or 8 objects of some 50 bytes, and frees them before
// it returns. While a CallMemory exists, its thread's `operator new` takes them from a
// block that the process has for that: no lock, no search, no system call. The block is
// empty again whenever all of them were freed. What finds no room there comes from the
// heap, as everywhere else; whatever the block gave may be freed later and by any thread.
//
// There is one block, since one EXEC runs at a time: where a second thread has a
// CallMemory meanwhile, that one does nothing. Under a sanitizer none does.
#ifndef FOLIOT_DEVICE_CPU_CALL_MEMORY_H_
#define FOLIOT_DEVICE_CPU_CALL_MEMORY_H_

namespace foliot {

class CallMemory {
 public:
  CallMemory();
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

 private:
  const bool first_;
};

}  // namespace foliot

#endif  // FOLIOT_DEVICE_CPU_CALL_MEMORY_H_
