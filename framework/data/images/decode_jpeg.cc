#include "framework/data/images/decode_jpeg.h"

#include <cstring>
#include <memory>

#include <turbojpeg.h>

#include "framework/core/error.h"

namespace dtrain {
namespace {

ImageSize ScaledBy(const tjscalingfactor& factor, const ImageSize& size) {
  return {TJSCALED(static_cast<int>(size.rows), factor),
          TJSCALED(static_cast<int>(size.columns), factor)};
}

// Returns the factor of the smallest image that is no smaller than `needed`.
tjscalingfactor SmallestFactor(const ImageSize& size, const ImageSize& needed) {
  int count = 0;
  const tjscalingfactor* factors = tjGetScalingFactors(&count);
  tjscalingfactor best = {1, 1};
  for (int i = 0; i < count; ++i) {
    const ImageSize scaled = ScaledBy(factors[i], size);
    if (scaled.rows >= needed.rows && scaled.columns >= needed.columns &&
        factors[i].num * best.denom < best.num * factors[i].denom) {
      best = factors[i];
    }
  }
  return best;
}

// Converts colours in place, so it needs no more memory.
void MakeGrey(Pixels& pixels) {
  const size_t count = pixels.bytes.size() / 3;
  GreyOfEach(pixels.bytes.data(), count, pixels.bytes.data());
  pixels.bytes.resize(count);
  pixels.channels = 1;
}

class JpegReader {
 public:
  JpegReader(std::string_view file, const std::string& name)
      : file_(file), name_(name), handle_(tjInitDecompress(), tjDestroy) {
    if (handle_ == nullptr) throw DataError(name + ": " + tjGetErrorStr2(nullptr));
    int columns = 0, rows = 0, subsampling = 0;
    const int failed = tjDecompressHeader3(handle_.get(), Begin(), file.size(), &columns, &rows,
                                           &subsampling, &colours_);
    // The header call fails for a chroma subsampling without a name, but the decoder accepts it.
    if (failed != 0 && (subsampling >= 0 || colours_ < 0)) Fail();
    if (rows == 0 || columns == 0) FailAsBroken(name, "JPEG", "it has no image");
    size_ = {rows, columns};
    CheckSize(name, size_);
  }

  const ImageSize& size() const { return size_; }

  Pixels Decode(int64_t channels, const ImageSize& needed) {
    if (colours_ == TJCS_CMYK || colours_ == TJCS_YCCK) {
      throw DataError(name_ + ": the JPEG has the colours of a printer (CMYK)",
                      "convert it to RGB");
    }
    if (channels == 1 && colours_ == TJCS_GRAY) return DecodeAs(TJPF_GRAY, needed);
    Pixels pixels = DecodeAs(TJPF_RGB, needed);
    if (channels == 1) MakeGrey(pixels);
    return pixels;
  }

 private:
  Pixels DecodeAs(TJPF format, const ImageSize& needed) {
    const tjscalingfactor factor = SmallestFactor(size_, needed);
    const ImageSize size = ScaledBy(factor, size_);
    Pixels pixels = BlankPixels(size, tjPixelSize[format]);
    pixels.original = size_;
    const auto share = [&](int64_t whole, int64_t scaled) {
      return static_cast<float>(whole * factor.num) / static_cast<float>(scaled * factor.denom);
    };
    pixels.used.right = share(size_.columns, size.columns);
    pixels.used.bottom = share(size_.rows, size.rows);
    if (tjDecompress2(handle_.get(), Begin(), file_.size(), pixels.bytes.data(),
                      static_cast<int>(size.columns), 0, static_cast<int>(size.rows), format,
                      TJFLAG_ACCURATEDCT) != 0) {
      // Stray bytes between two segments are harmless; some cameras write them.
      const bool stray = std::strstr(tjGetErrorStr2(handle_.get()), "extraneous bytes") != nullptr;
      if (!stray || tjGetErrorCode(handle_.get()) != TJERR_WARNING) Fail();
    }
    return pixels;
  }

  const unsigned char* Begin() const {
    return reinterpret_cast<const unsigned char*>(file_.data());
  }

  [[noreturn]] void Fail() const { FailAsBroken(name_, "JPEG", tjGetErrorStr2(handle_.get())); }

  const std::string_view file_;
  const std::string& name_;
  const std::unique_ptr<void, int (*)(tjhandle)> handle_;
  ImageSize size_;
  int colours_ = 0;
};

}  // namespace

ImageSize JpegSize(std::string_view file, const std::string& name) {
  return JpegReader(file, name).size();
}

Pixels DecodeJpeg(std::string_view file, const std::string& name, int64_t channels,
                  const std::function<ImageSize(const ImageSize&)>& needed) {
  JpegReader reader(file, name);
  return reader.Decode(channels, needed(reader.size()));
}

}  // namespace dtrain
