// Metadata: a Program as bytes and back. Bytes come from outside, so every index, size,
// offset and enumerator in them is checked before it is used.
#ifndef FOLIOT_ENGINE_PROGRAM_METADATA_H_
#define FOLIOT_ENGINE_PROGRAM_METADATA_H_

#include <cstddef>
#include <span>
#include <string>

#include "engine/program/program.h"
#include "foundation/base/status.h"

namespace foliot {

// Equal programs give equal bytes.
std::string encode_metadata(const Program& program);

// Errors: kInvalidArgument, saying what is wrong. A program that is returned
// passes check_program().
Result<Program> decode_metadata(std::span<const std::byte> bytes);

// That all parts of a program agree: tensors lie within their blocks, indices
// name something, aliases end, plans match the program's inputs and outputs.
Status check_program(const Program& program);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_PROGRAM_METADATA_H_
