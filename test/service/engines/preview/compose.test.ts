import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { windowOn } from '../../../../src/service/engines/preview/video/camera.js'
import { createComposer } from '../../../../src/service/engines/preview/video/compose.js'
import { KERNEL } from '../../../../src/service/engines/preview/video/kernel.js'
import { layerFromRgba } from '../../../../src/service/engines/preview/video/layer.js'

const WHOLE = { left: 0, top: 0, width: 1, height: 1 }

function plain(size: { width: number; height: number }, rgba: readonly [number, number, number, number]) {
  const bytes = new Uint8Array(size.width * size.height * 4)
  for (let at = 0; at < bytes.length; at++) bytes[at] = rgba[at % 4] ?? 0
  return layerFromRgba(bytes, size)
}

const size = { width: 68, height: 36 }
const PIXELS = size.width * size.height
const bytesOf = (layers: readonly ReturnType<typeof plain>[], window = WHOLE) => {
  const composer = createComposer(size)
  composer.stage(layers)
  composer.draw(layers.map(() => window))
  const frame = new Uint8Array(PIXELS * 1.5)
  composer.copyTo(frame)
  return frame
}
const frameOf = (...layers: ReturnType<typeof plain>[]) => {
  const frame = bytesOf(layers)
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
  const layer = layerFromRgba(rgba, stage)
  const window = { left: 0.05, top: 0, width: 0.85, height: 36 / 44 }
  const frame = bytesOf([layer], window)
  for (let column = 0; column < size.width; column++) {
    const place = Math.max(0, 0.05 * 80 + (column + 0.5) - 0.5)
    const expected = 16 + (place * 3 * 219) / 255
    expect(Math.abs((frame[column] ?? 0) - expected)).toBeLessThanOrEqual(1)
  }
})

test('a frame that is held melts into the next', () => {
  const composer = createComposer(size)
  const frame = new Uint8Array(PIXELS * 1.5)
  const draw = (shade: number) => {
    composer.stage([plain(size, [shade, shade, shade, 255])])
    composer.draw([WHOLE])
  }
  draw(0)
  composer.hold()
  const shares = [255, 192, 128, 64, 0].map((share) => {
    draw(255)
    composer.melt(share)
    composer.copyTo(frame)
    expect(new Set(frame.subarray(0, PIXELS)).size).toBe(1)
    return frame[0] ?? 0
  })
  expect(shares).toEqual([...shares].sort((one, other) => one - other))
  expect(shares[0]).toBeLessThan(20)
  expect(shares[4]).toBe(235)
})

const hasCompiler = existsSync('node_modules/assemblyscript')
test.skipIf(!hasCompiler)('the kernel is what its source compiles to', async () => {
  // @ts-expect-error: a script without types
  const { compileKernel } = await import('../../../../src/service/engines/preview/video/assembly/compile.mjs')
  const text: string = await compileKernel()
  expect([...text.matchAll(/'([^']+)'/g)].map(([, part]) => part).join('')).toBe(KERNEL)
})
