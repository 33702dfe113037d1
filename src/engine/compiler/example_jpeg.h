// Example JPEG: an image with about as much detail as a photo, to measure decoding with.
#ifndef FOLIOT_ENGINE_COMPILER_EXAMPLE_JPEG_H_
#define FOLIOT_ENGINE_COMPILER_EXAMPLE_JPEG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {

// At most `bytes_max` bytes, and mostly not much less: as many pixels as fit, up to
// `pixels_max`, with about two bits each. Empty if not even the smallest fits.
std::vector<std::byte> make_example_jpeg(Random& random, size_t bytes_max, uint64_t pixels_max);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_COMPILER_EXAMPLE_JPEG_H_
