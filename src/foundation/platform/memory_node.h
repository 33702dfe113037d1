// MemoryNode: while it lives, memory that the calling thread touches first is taken from
// one NUMA node where there is room, and from the nearest others where there is none.
//
// Preferred rather than bound: a node that is full makes a device slower; bound to it, the
// kernel would end the process.
#ifndef FOLIOT_FOUNDATION_PLATFORM_MEMORY_NODE_H_
#define FOLIOT_FOUNDATION_PLATFORM_MEMORY_NODE_H_

#include <cstdint>
#include <optional>

namespace foliot {

class MemoryNode {
 public:
  // nullopt: changes nothing. So does a system that does not permit it.
  explicit MemoryNode(std::optional<uint32_t> node);
  // Back to the kernel's default: the node of the core that the thread runs on.
  ~MemoryNode();
  MemoryNode(const MemoryNode&) = delete;
  MemoryNode& operator=(const MemoryNode&) = delete;

  // Whether the system has accepted it.
  bool set() const { return set_; }

 private:
  bool set_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_MEMORY_NODE_H_
