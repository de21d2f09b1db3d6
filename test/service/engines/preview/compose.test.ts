import { expect, test } from 'vitest'
import { windowOn } from '../../../../src/service/engines/preview/video/camera.js'
import { composeFrame } from '../../../../src/service/engines/preview/video/compose.js'
import { dissolve } from '../../../../src/service/engines/preview/video/dissolve.js'
import { layerFromRgba } from '../../../../src/service/engines/preview/video/layer.js'

const WHOLE = { left: 0, top: 0, width: 1, height: 1 }

function plain(size: { width: number; height: number }, rgba: readonly [number, number, number, number]) {
  const bytes = new Uint8Array(size.width * size.height * 4)
  for (let at = 0; at < bytes.length; at++) bytes[at] = rgba[at % 4] ?? 0
  return layerFromRgba(bytes, size)
}

const size = { width: 68, height: 36 }
const frameOf = (...layers: ReturnType<typeof plain>[]) => {
  const frame = new Uint8Array((size.width * size.height * 3) / 2)
  composeFrame(
    frame,
    size.width,
    size.height,
    layers.map((layer) => ({ layer, window: WHOLE })),
  )
  const pixels = size.width * size.height
  const parts = [
    frame.subarray(0, pixels),
    frame.subarray(pixels, pixels * 1.25),
    frame.subarray(pixels * 1.25),
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
  const frame = new Uint8Array((size.width * size.height * 3) / 2)
  const stage = { width: 80, height: 44 }
  const layers = [plain(stage, [255, 255, 255, 255]), plain(stage, [255, 255, 255, 77])]
  for (const movement of ['push', 'left', 'rise'] as const) {
    for (const progress of [0, 0.37, 1]) {
      const window = windowOn(size, movement, 1, progress)
      composeFrame(
        frame,
        size.width,
        size.height,
        layers.map((layer) => ({ layer, window })),
      )
      for (const value of frame.subarray(0, size.width * size.height))
        expect(value).toBeGreaterThanOrEqual(234)
    }
  }
})

test('a dissolve goes from the held frame to the new one', () => {
  const shares = Array.from({ length: 8 }, (_, index) => {
    const frame = new Uint8Array([200])
    dissolve(frame, new Uint8Array([20]), index)
    return frame[0] ?? 0
  })
  expect(shares).toEqual([...shares].sort((one, other) => one - other))
  expect(shares[0]).toBeLessThan(60)
  expect(shares[7]).toBeGreaterThan(160)
})
