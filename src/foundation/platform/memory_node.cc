#include "foundation/platform/memory_node.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace foliot {
namespace {

constexpr uint32_t kNodesMax = 1024;  // the kernel's limit
constexpr uint32_t kBits = 8 * sizeof(unsigned long);

}  // namespace

MemoryNode::MemoryNode(std::optional<uint32_t> node) {
  if (!node || *node >= kNodesMax) return;
  std::array<unsigned long, kNodesMax / kBits> nodes{};
  nodes[*node / kBits] = 1UL << (*node % kBits);
  // The kernel reads one bit less than it is given.
  set_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes.data(), kNodesMax + 1) == 0;
}

MemoryNode::~MemoryNode() {
  if (set_) syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
}

}  // namespace foliot
