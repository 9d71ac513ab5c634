#pragma once

#include <string>

#include "rhizome/storage/result.h"

namespace rhizome {

/// Is `path` one that DrawPlot draws: .svg or .png, without quotes? Errors: kInvalidArgument.
Status CheckPlotPath(const std::string& path);

/// The lines of a script that say where a picture goes, in pixels.
std::string PlotHead(const std::string& path, int width, int height);

/// Lets gnuplot draw what `script` says. The script stays beside the picture (`path`.gnuplot), for
/// whoever wants to draw it otherwise. Errors: kNotFound, there is no gnuplot; kIoError.
Status DrawPlot(const std::string& path, const std::string& script);

}  // namespace rhizome
