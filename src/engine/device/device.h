// Device: the interface of what can run a program, and the contract that every kind of
// device keeps and the conformance suite (engine/device/conformance) checks.
//
// A device has three kinds of memory, all taken once, by allocate():
//   page cache   weights, in pages of equal size; the caller decides which pages
//                stand behind which program (Clockwork, section 5.2)
//   io cache     one block of bytes for inputs and outputs in flight; the caller
//                decides what lies where
//   workspaces   intermediates; one for each context, that is for each batch that has
//                begun and is not finished
//
// It has lanes (foundation/core/lanes.h), which share all of this. On each interval of lanes one
// EXEC runs at a time, and several on intervals that have no lane in common.
//
// Compiling uses lower(); serving uses allocate(), then preload() for each
// program, then the Executable's prepare(), load(), run() and unload().
//
// Threading: lower(), preload() and prepare() may be called from any one thread at
// a time, and beside the others. load() and unload() belong to the LOAD executor's
// thread, copy_to_io() to the INPUT and copy_from_io() to the OUTPUT executor's. run()
// belongs to the thread of its lane interval, which is used for no other: the team of
// threads with which it computes stays with it, and runs where it may run itself. All of
// these may run at the same time.
#ifndef FOLIOT_ENGINE_DEVICE_DEVICE_H_
#define FOLIOT_ENGINE_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/graph.h"
#include "engine/device/plan.h"
#include "foundation/base/status.h"
#include "foundation/core/action.h"
#include "foundation/core/exec_part.h"

namespace foliot {

using PageIndex = uint32_t;

struct DeviceMemory {
  uint64_t page_bytes = uint64_t{16} << 20;
  uint32_t page_count = 0;
  // No model needs so many of these yet: a device may take their memory when LOAD first uses them.
  uint32_t spare_pages = 0;
  uint64_t io_cache_bytes = 0;
  uint64_t workspace_bytes = 0;  // of each context
  uint32_t contexts = 1;
};

// What one EXEC does: part of plan `plan`, with its input block and output block at these
// offsets of the io cache. Input tensor i of the plan starts at input_offset + its own offset.
struct DeviceRun {
  uint32_t plan = 0;
  ExecPart part{};
  uint64_t input_offset = 0;
  uint64_t output_offset = 0;
  // Where run() notes the rows whose input an operator refuses; the others are as if alone. Of
  // a batch in ranges, each adds what it finds. nullptr: not wanted.
  RowSet* failed_rows = nullptr;
};

// Where LOAD copies weights from: host memory or a file.
// Threading: any; devices of one process share it.
class WeightsSource {
 public:
  virtual ~WeightsSource() = default;
  virtual uint64_t bytes() const = 0;
  // Copies [offset, offset + to.size()) to `to`. REQUIRES: within bytes().
  // `to` and `offset` are multiples of 4096 but for the last piece.
  virtual Status read(uint64_t offset, std::span<std::byte> to) = 0;
};

// One program on a device.
class Executable {
 public:
  virtual ~Executable() = default;

  // Makes all that running plan `plan` (its position in preload()'s `plans`) on any
  // interval of `width` lanes needs: nothing is made or chosen later. At once if it was
  // done before, for this program or for one with the same plans. Errors: kInvalidArgument
  // for a plan of another fingerprint or a damaged one, naming operator and batch size; then
  // the plan is not prepared for this width, and all else is as it was. REQUIRES: one of
  // lane_widths().
  virtual Status prepare(uint32_t plan, uint32_t width) = 0;

  // LOAD: puts the weights into these pages, in this order, and makes them what run()
  // sees. Blocks for as long as copying takes. REQUIRES: not loaded; as many pages as
  // the weights need; the pages belong to no other program.
  virtual Status load(std::span<const PageIndex> pages) = 0;
  // Forgets the pages; they may belong to another from here on. REQUIRES:
  // loaded, and no run() in progress.
  virtual void unload() = 0;

  // EXEC. A range continues from what its context holds, wherever the one before it ran: no
  // intermediate is copied.
  //
  // No allocation by this code, no lock, no log, no blocking system call.
  // REQUIRES: loaded; the plan is prepared for this width; no other run() on any of these
  // lanes or in this context; offsets are multiples of kTensorAlignment.
  virtual Status run(const DeviceRun& run) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // "cpu".
  virtual std::string kind() const = 0;
  // Everything that lowering depends on (library version, instruction set,
  // threads): packages made under another fingerprint must be made anew.
  virtual std::string fingerprint() const = 0;
  // Whether a program made under this fingerprint computes the same here: on another
  // number of threads it does, with another instruction set it may not.
  virtual bool runs(const std::string& fingerprint) const = 0;

  virtual uint32_t lanes() const { return 1; }

  // Whether products of this type (kBfloat16; kUint8: by int8, summed up exactly) have
  // fast kernels, so that narrowing what is multiplied saves time. Otherwise
  // kUnimplemented with what is missing; graphs with such products then run in float32.
  virtual Status supports_products(DataType type) const = 0;

  // A fresh device with the options of this one.
  virtual std::unique_ptr<Device> another() const = 0;

  // The layouts of activations worth trying for these graphs, at least one. Only
  // measuring shows which is the fastest.
  virtual std::vector<std::string> layouts(std::span<const Graph> graphs) const = 0;
  // Chooses kernels that suit one of layouts(), packs constants, inserts reorders and
  // determines which tensors alias. One packing of each constant serves all graphs.
  // Errors: kUnimplemented naming the node.
  virtual Result<LoweredProgram> lower(std::span<const Graph> graphs, const std::string& layout) = 0;

  // Takes, locks and pre-faults all memory. Call once, before preload(). Errors:
  // kResourceExhausted, with how much was not available and what to do.
  virtual Status allocate(const DeviceMemory& memory) = 0;

  // Takes a program in, with none of its plans prepared. `plans` stay where they are
  // until the last prepare(); `weights` is kept and read by load(). Errors:
  // kInvalidArgument for damaged plans, as far as it shows before they are prepared;
  // kResourceExhausted if a plan's workspace exceeds a context's.
  virtual Result<std::unique_ptr<Executable>> preload(std::span<const Plan> plans,
                                                      std::shared_ptr<WeightsSource> weights) = 0;

  // INPUT and OUTPUT. REQUIRES: within the io cache.
  virtual void copy_to_io(uint64_t offset, std::span<const std::byte> from) = 0;
  virtual void copy_from_io(uint64_t offset, std::span<std::byte> to) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_DEVICE_H_
