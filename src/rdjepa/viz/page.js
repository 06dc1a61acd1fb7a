// Draws the chosen frame. Arguments: the widgets and sources of page.py, and `data`:
//   clips of F frames on rows x columns points with C components; the first `given` frames of a clip were given to the
//   forecaster; reference (clips, F, rows, columns, C) and error (clips, F - given, rows, columns, C), one byte a value;
//   low, high (clips, C) of the reference, largest (clips, C) magnitude of the error; first (trajectory -> its first clip), windows, frame (clips, F)
const {clips, F, given, rows, columns, C} = data
const trajectory = Number(which.value), windows = data.windows[trajectory]
part.end = Math.max(windows, 1.5)  // a slider needs a range
const clip = data.first[trajectory] + Math.min(part.value, windows) - 1
const c = Number(component.value), f = time.value - 1, h = f + 1 - given
const low = data.low[clip * C + c], high = data.high[clip * C + c], largest = data.largest[clip * C + c]

const shown = reference.data.image[0], size = rows * columns
const future = forecast ? forecast.data.image[0] : null, wrong = error ? error.data.image[0] : null
const known = (clip * F + f) * size, later = (clip * (F - given) + h - 1) * size
for (let i = 0; i < size; i++) {
  shown[i] = low + (high - low) * data.reference[(known + i) * C + c] / 255
  if (!future) continue
  const e = h > 0 ? largest * (data.error[(later + i) * C + c] / 127.5 - 1) : 0
  future[i] = shown[i] + e
  wrong[i] = Math.abs(e)
}
colors.low = low
colors.high = high > low ? high : low + 1
reference.change.emit()
const y = Math.min(row.value, rows) - 1, lines = {...profile.data}
lines.reference = Array.from(shown.slice(y * columns, (y + 1) * columns))
if (future) {
  errors.high = largest > 0 ? largest : 1
  forecast.change.emit()
  error.change.emit()
  lines.forecast = Array.from(future.slice(y * columns, (y + 1) * columns))
  const bins = data.bins, at = (clip * (F - given) + Math.max(h, 1) - 1) * bins, horizons = F - given
  spectrum.data = {...spectrum.data, reference: Array.from(data.energy.slice(at, at + bins)),
                   error: Array.from(data.wrong.slice(at, at + bins))}
  const from = clip * horizons
  horizon.data = {...horizon.data, forecast: Array.from(data.l2.slice(from, from + horizons)),
                  persistence: Array.from(data.still.slice(from, from + horizons))}
}
profile.data = lines
const number = data.frame[clip * F + f]
says.text = future ? (h > 0 ? `frame ${number}: ${h} after the newest given one` : `frame ${number}: given`) : `frame ${number}`
