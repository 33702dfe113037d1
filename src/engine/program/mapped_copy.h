// copy_from_mapped_file(): copies from a mapped file that another process may truncate
// meanwhile. Reading behind its new end raises SIGBUS, which would end the process.
#ifndef FOLIOT_ENGINE_PROGRAM_MAPPED_COPY_H_
#define FOLIOT_ENGINE_PROGRAM_MAPPED_COPY_H_

#include <cstddef>
#include <span>

namespace foliot {

// Takes over the process's handler of SIGBUS; signals that have nothing to do with a copy
// go to the one before. Of programs, not of rooms.
void handle_bus_errors();

// False, with `to` partly written, if bytes of `from` are not there any more, or cannot
// be read from disk. The last page of a file that was cut within it reads as zeros: a
// caller for which that matters checks the file's size afterwards.
//
// Without handle_bus_errors() the process ends instead. Threading: any thread.
bool copy_from_mapped_file(std::span<std::byte> to, const std::byte* from);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_MAPPED_COPY_H_
