import { expect, test } from 'vitest'
import type { Size } from '../../src/preview/render-request.js'
import {
  type ColourChannel,
  composeFrame,
  dissolve,
  type FilmLayer,
  layerFromRgba,
} from '../../src/preview/video/compose.js'
import { windowOn } from '../../src/preview/video/shots.js'

const WHOLE = { left: 0, top: 0, width: 1, height: 1 }

interface Picture {
  readonly rgba: Uint8Array
  readonly size: Size
}

function plain(size: Size, rgba: readonly [number, number, number, number]): Picture {
  const bytes = new Uint8Array(size.width * size.height * 4)
  for (let at = 0; at < bytes.length; at++) bytes[at] = rgba[at % 4] ?? 0
  return { rgba: bytes, size }
}

const size = { width: 68, height: 36 }
const PIXELS = size.width * size.height
const bytesOf = (pictures: readonly Picture[], window = WHOLE) => {
  const frame = new Uint8Array(PIXELS * 1.5)
  composeFrame(
    frame,
    size,
    pictures.map((each) => ({ layer: layerFromRgba(each.rgba, each.size), window })),
  )
  return frame
}
const frameOf = (...pictures: Picture[]) => {
  const frame = bytesOf(pictures)
  const parts = [
    frame.subarray(0, PIXELS),
    frame.subarray(PIXELS, PIXELS * 1.25),
    frame.subarray(PIXELS * 1.25),
  ]
  return parts.map((part) => [...new Set(part)])
}

// BT.709, limited range: the values that the standard's matrix gives.
test.each([
  ['white', [255, 255, 255, 255], [235, 128, 128]],
  ['black', [0, 0, 0, 255], [16, 128, 128]],
  ['red', [255, 0, 0, 255], [63, 102, 240]],
  ['green', [0, 255, 0, 255], [173, 42, 26]],
  ['blue', [0, 0, 255, 255], [32, 240, 118]],
] as const)('%s', (_, rgba, [luma, blue, red]) => {
  expect(frameOf(plain(size, rgba))).toEqual([[luma], [blue], [red]])
})

test('a transparent layer changes nothing, an opaque one hides all, half a layer is half', () => {
  const white = plain(size, [255, 255, 255, 255])
  expect(frameOf(white, plain(size, [9, 9, 9, 0]))).toEqual([[235], [128], [128]])
  expect(frameOf(white, plain(size, [0, 0, 0, 255]))).toEqual([[16], [128], [128]])
  const [luma] = frameOf(white, plain(size, [0, 0, 0, 128]))
  expect(Math.abs((luma?.[0] ?? 0) - 125)).toBeLessThanOrEqual(1)
})

test('whatever the window, white stays white: nothing wraps, no edge shows', () => {
  const stage = { width: 80, height: 44 }
  const layers = [plain(stage, [255, 255, 255, 255]), plain(stage, [255, 255, 255, 77])]
  for (const movement of ['push', 'left', 'rise'] as const) {
    for (const progress of [0, 0.37, 1]) {
      const frame = bytesOf(layers, windowOn(size, movement, 1, progress))
      for (const value of frame.subarray(0, PIXELS)) expect(value).toBeGreaterThanOrEqual(234)
    }
  }
})

test('what is drawn is what lies in the window, mixed between its pixels', () => {
  const stage = { width: 80, height: 44 }
  const rgba = new Uint8Array(80 * 44 * 4).fill(255)
  for (let at = 0; at < 80 * 44; at++) rgba.fill((at % 80) * 3, at * 4, at * 4 + 3)
  const window = { left: 0.05, top: 0, width: 0.85, height: 36 / 44 }
  const frame = bytesOf([{ rgba, size: stage }], window)
  for (let column = 0; column < size.width; column++) {
    const place = Math.max(0, 0.05 * 80 + (column + 0.5) - 0.5)
    const expected = 16 + (place * 3 * 219) / 255
    expect(Math.abs((frame[column] ?? 0) - expected)).toBeLessThanOrEqual(1)
  }
})

test('a frame that is held dissolves into the next', () => {
  const held = bytesOf([plain(size, [0, 0, 0, 255])])
  const shares = [255, 192, 128, 64, 0].map((share) => {
    const frame = bytesOf([plain(size, [255, 255, 255, 255])])
    dissolve(frame, held, share)
    expect(new Set(frame.subarray(0, PIXELS)).size).toBe(1)
    return frame[0] ?? 0
  })
  expect(shares).toEqual([...shares].sort((one, other) => one - other))
  expect(shares[0]).toBeLessThan(20)
  expect(shares[4]).toBe(235)
  // Rounded, not cut off.
  const frame = Uint8Array.of(10)
  dissolve(frame, Uint8Array.of(11), 128)
  expect(frame[0]).toBe(11)
})

test('two layers seen through a window are mixed between four pixels each, in every tile', () => {
  const stage = { width: 80, height: 44 }
  let seed = 11
  const noise = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed >> 23
  }
  // Areas that are opaque, empty, and mixed.
  const alphaAt = (row: number, column: number) => (row > 20 ? noise() : column < 40 ? 255 : 0)
  const [below, above] = [() => 255, alphaAt].map((alpha) =>
    layerFromRgba(
      Uint8Array.from({ length: stage.width * stage.height * 4 }, (_, at) =>
        at % 4 < 3 ? noise() : alpha(Math.floor(at / 4 / stage.width), ((at / 4) % stage.width) | 0),
      ),
      stage,
    ),
  ) as [FilmLayer, FilmLayer]
  const window = { left: 0.07, top: 0.05, width: 0.88, height: 0.86 }
  const frame = new Uint8Array(PIXELS * 1.5)
  composeFrame(
    frame,
    size,
    [below, above].map((layer) => ({ layer, window })),
  )

  const across = (start: number, extent: number, length: number, pixels: number, pixel: number) => {
    const place = Math.min(
      length - 1,
      Math.max(0, start * length + (pixel + 0.5) * ((extent * length) / pixels) - 0.5),
    )
    const lower = Math.min(length - 2, Math.floor(place))
    return [lower, place - lower] as const
  }
  for (const [plane, name, half] of [
    [0, 'luma', 1],
    [0, 'chroma', 2],
    [1, 'chroma', 2],
  ] as const) {
    const [width, height] = [size.width / half, size.height / half]
    const offset = name === 'luma' ? 0 : PIXELS + (plane * PIXELS) / 4
    for (let at = 0; at < width * height; at++) {
      const sample = (layer: FilmLayer, values: (channel: ColourChannel) => Uint8Array | undefined) => {
        const channel = layer[name]
        const [row, down] = across(window.top, window.height, channel.height, height, Math.floor(at / width))
        const [column, right] = across(window.left, window.width, channel.width, width, at % width)
        const value = (y: number, x: number) => values(channel)?.[(row + y) * channel.width + column + x] ?? 0
        const line = (y: number) => value(y, 0) * (1 - right) + value(y, 1) * right
        return line(0) * (1 - down) + line(1) * down
      }
      const alpha = sample(above, (channel) => channel.alpha) / 255
      const expected =
        sample(above, ({ values }) => values[plane]) +
        sample(below, ({ values }) => values[plane]) * (1 - alpha)
      expect(Math.abs((frame[offset + at] ?? 0) - expected), `${name} ${plane} ${at}`).toBeLessThan(2.5)
    }
  }
})

/** What BT.709 says of a pixel in 1/65536, times its transparency; four pixels make one of the colour differences. */
function reckon(rgba: Uint8Array, stride: number, { width, height }: Size): Uint8Array {
  const wanted = new Uint8Array((width * height * 3) / 2)
  const pixel = (row: number, column: number): readonly number[] => {
    const [r = 0, g = 0, b = 0, a = 0] = rgba.subarray((row * stride + column) * 4)
    return [r, g, b].map((value) => ((value * a + 127) * 257) >> 16).concat(a)
  }
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const [r = 0, g = 0, b = 0, a = 0] = pixel(row, column)
      wanted[row * width + column] = (r * 11966 + g * 40254 + b * 4064 + a * 4112 + 32768) >> 16
    }
  }
  for (let row = 0; row < height; row += 2) {
    for (let column = 0; column < width; column += 2) {
      const four = [
        pixel(row, column),
        pixel(row, column + 1),
        pixel(row + 1, column),
        pixel(row + 1, column + 1),
      ]
      const [r = 0, g = 0, b = 0, a = 0] = [0, 1, 2, 3].map((at) =>
        four.reduce((sum, each) => sum + (each[at] ?? 0), 0),
      )
      const at = width * height + (row * width) / 4 + column / 2
      wanted[at] = (b * 28784 - r * 6596 - g * 22188 + a * 32896 + 131072) >> 18
      wanted[at + (width * height) / 4] = (r * 28784 - g * 26145 - b * 2639 + a * 32896 + 131072) >> 18
    }
  }
  return wanted
}

test.each([
  [70, 36],
  [10, 4],
  [76, 38],
])('a layer of %i x %i is what the standard says, to the last digit', (width, height) => {
  let seed = 7
  const noise = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return seed >> 16
  }
  const rgba = Uint8Array.from({ length: width * height * 4 }, (_, at) =>
    at % 4 < 3 ? noise() : ([0, 255, noise()][noise() % 3] ?? 0),
  )
  // A frame sees neither the last row nor the last column of a layer alone: they are mixed with those before.
  const seen = { width: width - 2, height: height - 2 }
  const window = { left: 0, top: 0, width: seen.width / width, height: seen.height / height }
  const frame = new Uint8Array((seen.width * seen.height * 3) / 2)
  // Onto nothing: then what is seen is the layer itself, times its transparency.
  const layer = layerFromRgba(rgba, { width, height })
  composeFrame(frame, seen, [
    { layer: layerFromRgba(new Uint8Array(rgba.length), { width, height }), window },
    { layer, window },
  ])
  expect(frame).toEqual(reckon(rgba, width, seen))
  // Of four pixels' alphas the mean, rounded.
  const four = [3, 7, width * 4 + 3, width * 4 + 7].reduce((sum, at) => sum + (rgba[at] ?? 0), 0)
  expect(layer.chroma.alpha[0]).toBe(Math.round(four / 4))
})
