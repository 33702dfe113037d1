#include "engine/device/cpu/jpeg_decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstring>

// jpeglib.h needs what cstdio declares.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "foundation/base/check.h"

// libjpeg's own names for what its memory managers keep. Ours keeps all of it in memory.
struct jvirt_sarray_control {};
struct jvirt_barray_control {
  JBLOCKARRAY rows;
  JDIMENSION row_count;
};

namespace foliot {
namespace {

constexpr size_t kAlignment = 64;  // libjpeg's vector code reads and writes whole registers
constexpr int kWeightBits = 22;
constexpr int kComponents = 3;

// Where one position of the result reads along one dimension.
struct Window {
  int first, count;
};

struct Filter {
  Window* windows;
  int32_t* weights;  // `stride` for each window
  int stride;

  const int32_t* weights_of(int position) const { return weights + static_cast<size_t>(position) * stride; }
};

// Along one dimension: [begin, begin + extent) of an image becomes `to` pixels of the
// result, from `at` on.
struct Range {
  double begin, extent;
  int at, to;
};

struct Geometry {
  Range x, y;
};

Geometry geometry_of(const JpegTarget& target, double width, double height) {
  const auto to_width = static_cast<int>(target.width), to_height = static_cast<int>(target.height);
  Geometry whole{{0, width, 0, to_width}, {0, height, 0, to_height}};
  // Both are exact: products of whole numbers.
  const double wide = width * to_height, high = height * to_width;
  switch (target.fit) {
    case JpegFit::kStretch: break;
    case JpegFit::kCrop:
      if (wide > high) {
        whole.x.extent = high / to_height;
        whole.x.begin = (width - whole.x.extent) / 2;
      } else {
        whole.y.extent = wide / to_width;
        whole.y.begin = (height - whole.y.extent) / 2;
      }
      break;
    case JpegFit::kPad: {
      Range& narrow = wide > high ? whole.y : whole.x;
      const int full = narrow.to;
      const double exact = wide > high ? high / width : wide / height;
      narrow.to = std::clamp(static_cast<int>(std::lround(exact)), 1, full);
      narrow.at = (full - narrow.to) / 2;
      break;
    }
  }
  return whole;
}

// The least of libjpeg's scales, as its denominator.
unsigned denominator_of(const Geometry& geometry) {
  for (unsigned denominator : {8u, 4u, 2u}) {
    if (geometry.x.extent >= double{1} * denominator * geometry.x.to &&
        geometry.y.extent >= double{1} * denominator * geometry.y.to) {
      return denominator;
    }
  }
  return 1;
}

Range scaled(const Range& range, double from, double to) {
  // What is whole stays whole, whatever the quotient is rounded to.
  if (range.extent == from) return {0, to, range.at, range.to};
  return {range.begin * to / from, range.extent * to / from, range.at, range.to};
}

uint8_t to_level(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

}  // namespace

std::optional<JpegFit> parse_jpeg_fit(std::string_view name) {
  if (name == "stretch") return JpegFit::kStretch;
  if (name == "crop") return JpegFit::kCrop;
  if (name == "pad") return JpegFit::kPad;
  return std::nullopt;
}

// libjpeg reports errors by a jump, so nothing that is live in decode() has a destructor.
struct JpegDecoder::State {
  jpeg_decompress_struct decompress{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  jpeg_memory_mgr arena{};
  jpeg_memory_mgr* own_memory = nullptr;  // libjpeg's: what it made when it was started lies there
  std::jmp_buf jump{};
  JpegError error = JpegError::kNone;
  std::span<std::byte> memory;
  size_t used = 0;

  static State& of(j_common_ptr common) { return *static_cast<State*>(common->client_data); }
  [[noreturn]] void fail(JpegError reason) {
    error = reason;
    std::longjmp(jump, 1);
  }

  State() {
    decompress.err = jpeg_std_error(&errors);
    errors.error_exit = [](j_common_ptr common) { of(common).fail(JpegError::kDamaged); };
    errors.output_message = [](j_common_ptr) {};
    // libjpeg goes on after a warning, with an image that is partly grey.
    errors.emit_message = [](j_common_ptr common, int level) {
      const int code = common->err->msg_code;
      if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM) of(common).fail(JpegError::kDamaged);
    };
    decompress.client_data = this;
    const bool made = setjmp(jump) == 0;
    FOLIOT_CHECK(made);
    jpeg_create_decompress(&decompress);
    own_memory = decompress.mem;
    set_source();
    set_arena();
    progress.progress_monitor = [](j_common_ptr common) {
      const State& state = of(common);
      if (state.decompress.input_scan_number > kJpegScansMax) of(common).fail(JpegError::kTooLarge);
    };
  }

  ~State() {
    decompress.mem = own_memory;
    jpeg_destroy_decompress(&decompress);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void set_source() {
    source.init_source = [](j_decompress_ptr) {};
    source.term_source = [](j_decompress_ptr) {};
    source.resync_to_restart = [](j_decompress_ptr it, int) -> boolean {
      of(reinterpret_cast<j_common_ptr>(it)).fail(JpegError::kDamaged);
    };
    source.fill_input_buffer = [](j_decompress_ptr it) -> boolean {
      of(reinterpret_cast<j_common_ptr>(it)).fail(JpegError::kDamaged);
    };
    source.skip_input_data = [](j_decompress_ptr it, long bytes) {
      if (bytes <= 0) return;
      jpeg_source_mgr& from = *it->src;
      if (static_cast<size_t>(bytes) > from.bytes_in_buffer)
        of(reinterpret_cast<j_common_ptr>(it)).fail(JpegError::kDamaged);
      from.next_input_byte += bytes;
      from.bytes_in_buffer -= static_cast<size_t>(bytes);
    };
  }

  void set_arena() {
    arena.max_memory_to_use = own_memory->max_memory_to_use;
    arena.max_alloc_chunk = own_memory->max_alloc_chunk;
    arena.alloc_small = [](j_common_ptr common, int, size_t bytes) { return of(common).take(bytes); };
    arena.alloc_large = [](j_common_ptr common, int, size_t bytes) { return of(common).take(bytes); };
    arena.alloc_sarray = [](j_common_ptr common, int, JDIMENSION width, JDIMENSION rows) {
      // Vector code goes beyond the end of a row by up to one register less a sample.
      return of(common).take_rows<JSAMPLE>(width + kAlignment, rows);
    };
    arena.alloc_barray = [](j_common_ptr common, int, JDIMENSION width, JDIMENSION rows) {
      return of(common).take_rows<JBLOCK>(width, rows);
    };
    arena.request_virt_sarray = [](j_common_ptr common, int, boolean, JDIMENSION, JDIMENSION,
                                   JDIMENSION) -> jvirt_sarray_ptr { of(common).fail(JpegError::kMemory); };
    arena.request_virt_barray = [](j_common_ptr common, int, boolean zero, JDIMENSION width, JDIMENSION rows,
                                   JDIMENSION) {
      State& state = of(common);
      auto* array = static_cast<jvirt_barray_control*>(state.take(sizeof(jvirt_barray_control)));
      *array = {state.take_rows<JBLOCK>(width, rows), rows};
      for (JDIMENSION row = 0; zero && row < rows; ++row) std::memset(array->rows[row], 0, width * sizeof(JBLOCK));
      return array;
    };
    arena.realize_virt_arrays = [](j_common_ptr) {};
    arena.access_virt_sarray = [](j_common_ptr common, jvirt_sarray_ptr, JDIMENSION, JDIMENSION,
                                  boolean) -> JSAMPARRAY { of(common).fail(JpegError::kMemory); };
    arena.access_virt_barray = [](j_common_ptr common, jvirt_barray_ptr array, JDIMENSION first, JDIMENSION count,
                                  boolean) {
      if (first > array->row_count || count > array->row_count - first) of(common).fail(JpegError::kDamaged);
      return array->rows + first;
    };
    arena.free_pool = [](j_common_ptr, int) {};
    arena.self_destruct = [](j_common_ptr) {};
  }

  void* take(size_t bytes) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded < bytes || rounded > memory.size() - used) fail(JpegError::kMemory);
    void* taken = memory.data() + used;
    used += rounded;
    return taken;
  }
  template <typename T>
  T* take_array(size_t count) {
    if (count > memory.size() / sizeof(T)) fail(JpegError::kMemory);
    return static_cast<T*>(take(count * sizeof(T)));
  }
  template <typename T>
  T** take_rows(size_t width, size_t rows) {
    T** array = take_array<T*>(rows);
    for (size_t row = 0; row < rows; ++row) array[row] = take_array<T>(width);
    return array;
  }

  Filter make_filter(const Range& range, int from) {
    const double scale = range.extent / range.to;
    const double reach = std::max(scale, 1.0);
    Filter filter{};
    filter.stride = static_cast<int>(std::ceil(reach)) * 2 + 1;
    const auto count = static_cast<size_t>(range.to), stride = static_cast<size_t>(filter.stride);
    filter.windows = take_array<Window>(count);
    filter.weights = take_array<int32_t>(count * stride);
    auto* exact = take_array<double>(stride);
    for (int position = 0; position < range.to; ++position) {
      const double centre = range.begin + (position + 0.5) * scale;
      const int first = std::max(static_cast<int>(centre - reach + 0.5), 0);
      const int last = std::min({static_cast<int>(centre + reach + 0.5), from, first + filter.stride});
      Window& window = filter.windows[position];
      window = {first, std::max(last - first, 1)};
      if (last <= first) window.first = std::clamp(first, 0, from - 1);
      double total = 0;
      for (int i = 0; i < window.count; ++i) {
        exact[i] = std::max(1 - std::fabs((window.first + i + 0.5 - centre) / reach), 0.0);
        total += exact[i];
      }
      int32_t* weights = filter.weights + static_cast<size_t>(position) * stride;
      for (int i = 0; i < window.count; ++i) {
        const double share = total > 0 ? exact[i] / total : 1.0 / window.count;
        weights[i] = static_cast<int32_t>(std::floor(share * (1 << kWeightBits) + 0.5));
      }
    }
    return filter;
  }

  void begin(std::span<const std::byte> jpeg) {
    jpeg_abort_decompress(&decompress);
    std::fill(std::begin(decompress.quant_tbl_ptrs), std::end(decompress.quant_tbl_ptrs), nullptr);
    std::fill(std::begin(decompress.dc_huff_tbl_ptrs), std::end(decompress.dc_huff_tbl_ptrs), nullptr);
    std::fill(std::begin(decompress.ac_huff_tbl_ptrs), std::end(decompress.ac_huff_tbl_ptrs), nullptr);
    used = 0;
    source.next_input_byte = reinterpret_cast<const JOCTET*>(jpeg.data());
    source.bytes_in_buffer = jpeg.size();
    decompress.mem = &arena;
    decompress.src = &source;
    decompress.progress = &progress;
  }

  void decode(std::span<const std::byte> jpeg, const JpegTarget& target, uint8_t* image) {
    begin(jpeg);
    jpeg_read_header(&decompress, TRUE);
    if (uint64_t{decompress.image_width} * decompress.image_height > target.pixels_max) fail(JpegError::kTooLarge);
    if (decompress.jpeg_color_space == JCS_CMYK || decompress.jpeg_color_space == JCS_YCCK ||
        decompress.jpeg_color_space == JCS_UNKNOWN) {
      fail(JpegError::kColours);
    }
    decompress.out_color_space = JCS_RGB;
    const double width = decompress.image_width, height = decompress.image_height;
    Geometry geometry = geometry_of(target, width, height);
    decompress.scale_num = 1;
    decompress.scale_denom = denominator_of(geometry);
    jpeg_start_decompress(&decompress);
    geometry.x = scaled(geometry.x, width, decompress.output_width);
    geometry.y = scaled(geometry.y, height, decompress.output_height);
    if (target.fit == JpegFit::kPad) std::memset(image, target.pad_value, target.bytes());
    resize(geometry, size_t{kComponents} * target.width, image);
    // Up to the end marker: zeros behind a JPEG that was cut off pass for data.
    jpeg_finish_decompress(&decompress);
  }

  // Keeps the rows that a row of the result reads, resized along themselves, in a ring.
  void resize(const Geometry& geometry, size_t image_stride, uint8_t* image) {
    const auto from_width = static_cast<int>(decompress.output_width);
    const auto from_height = static_cast<int>(decompress.output_height);
    const Filter across = make_filter(geometry.x, from_width), down = make_filter(geometry.y, from_height);
    const auto row_bytes = size_t{kComponents} * static_cast<size_t>(geometry.x.to);
    const int ring_rows = std::min(down.stride, from_height);
    uint8_t** ring = take_rows<uint8_t>(row_bytes, static_cast<size_t>(ring_rows));
    auto* decoded = take_array<uint8_t>(size_t{kComponents} * decompress.output_width + kAlignment);
    auto* sums = take_array<int32_t>(row_bytes);
    int done = 0;
    for (int row = 0; row < from_height; ++row) {
      JSAMPROW rows[] = {decoded};
      if (jpeg_read_scanlines(&decompress, rows, 1) != 1) fail(JpegError::kDamaged);
      if (done == geometry.y.to || row < down.windows[done].first) continue;
      narrow_row(across, geometry.x.to, decoded, ring[row % ring_rows]);
      for (; done < geometry.y.to && down.windows[done].first + down.windows[done].count <= row + 1; ++done) {
        uint8_t* to = image + static_cast<size_t>(geometry.y.at + done) * image_stride +
                      size_t{kComponents} * static_cast<size_t>(geometry.x.at);
        join_rows(down.windows[done], down.weights_of(done), ring, ring_rows, {sums, row_bytes}, to);
      }
    }
  }

  static void narrow_row(const Filter& filter, int count, const uint8_t* from, uint8_t* to) {
    constexpr int32_t kHalf = 1 << (kWeightBits - 1);
    for (int position = 0; position < count; ++position, to += kComponents) {
      const Window window = filter.windows[position];
      const int32_t* weights = filter.weights_of(position);
      const uint8_t* pixel = from + static_cast<size_t>(window.first) * kComponents;
      int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (int i = 0; i < window.count; ++i, pixel += kComponents) {
        red += weights[i] * pixel[0];
        green += weights[i] * pixel[1];
        blue += weights[i] * pixel[2];
      }
      to[0] = to_level(red);
      to[1] = to_level(green);
      to[2] = to_level(blue);
    }
  }

  static void join_rows(const Window& window, const int32_t* weights, uint8_t* const* ring, int ring_rows,
                        std::span<int32_t> sums, uint8_t* to) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    for (int i = 0; i < window.count; ++i) {
      const uint8_t* row = ring[(window.first + i) % ring_rows];
      const int32_t weight = weights[i];
      for (size_t j = 0; j < sums.size(); ++j) sums[j] += weight * row[j];
    }
    for (size_t j = 0; j < sums.size(); ++j) to[j] = to_level(sums[j]);
  }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;

JpegError JpegDecoder::decode(std::span<const std::byte> jpeg, const JpegTarget& target, std::span<std::byte> memory,
                              std::span<std::byte> image) {
  FOLIOT_CHECK(image.size() == target.bytes() && !image.empty());
  State& state = *state_;
  state.error = JpegError::kNone;
  state.memory = memory;
  if (setjmp(state.jump) == 0) state.decode(jpeg, target, reinterpret_cast<uint8_t*>(image.data()));
  return state.error;
}

uint64_t JpegDecoder::memory_bytes(const JpegTarget& target) {
  // The buffers of libjpeg for the widest image, and those of the filters.
  constexpr uint64_t kRows = uint64_t{6} << 20;
  return kRows + target.pixels_max * 3 / 2 / kAlignment * kAlignment + uint64_t{64} * target.width + target.bytes();
}

}  // namespace foliot
