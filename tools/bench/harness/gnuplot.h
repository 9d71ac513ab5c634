#pragma once

#include <string>

#include "rhizome/status.h"

namespace rhizome {

/// Checks that DrawPlot can write to `path`: .svg or .png, without quotes. Errors:
/// kInvalidArgument.
Status CheckPlotPath(const std::string& path);

/// Returns the lines of a gnuplot script that set the output file and its size in pixels.
std::string PlotHead(const std::string& path, int width, int height);

/// Runs gnuplot on `script`. The script is kept next to the picture (`path`.gnuplot), so that users
/// can adapt it. Errors: kNotFound, gnuplot is not installed; kIoError.
Status DrawPlot(const std::string& path, const std::string& script);

}  // namespace rhizome
