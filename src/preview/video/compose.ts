// Frames from the layers of a shot, in I420. The plan of a frame is made here, the bytes are moved by the kernel
// (assembly/compose.ts). sharp would need RGBA frames and a conversion of each.
import type { Size } from '../sizes.js'
import type { Window } from './camera.js'
import { KERNEL } from './kernel.js'
import { type Channel, type Layer, layerFromRgba, type Splitter } from './layer.js'
import { KernelMemory } from './memory.js'
import { BLOCK, blockBytes, planAxis, rowBytes, writeBlocks, writeRows } from './plan.js'

/** The planes of one frame: width x height bytes of luma, then U and V at a quarter of that each. */
export type Frame = Uint8Array

export interface Composer {
  /** A layer of RGBA (not premultiplied) of an even size of at least 8 x 2, kept until it is forgotten. */
  layer(rgba: Uint8Array, size: Size): Layer
  /** Nothing is drawn from it any more. */
  forget(layer: Layer): void
  /** Draws a frame from layers, the furthest first, which has to cover everything; of each what its window shows. */
  draw(views: readonly View[]): void
  /** Keeps the frame that was drawn last, for `melt`. */
  hold(): void
  /** Makes the frame `share` of 256 what is held. */
  melt(share: number): void
  copyTo(frame: Frame): void
}

export interface View {
  readonly layer: Layer
  /** The part of it that fills the frame. */
  readonly window: Window
}

interface Kernel extends Splitter {
  compose(
    views: number,
    count: number,
    marks: number,
    target: number,
    targetStride: number,
    height: number,
    blocks: number,
  ): void
  melt(frame: number, held: number, length: number, share: number): void
}

/** One kind of channel (luma, or both colour differences) of the frame. */
interface Target {
  readonly width: number
  readonly height: number
  readonly stride: number
  readonly planes: readonly number[]
}

/** A view as the kernel reads it. */
const VIEW_WORDS = 8

export function createComposer({ width, height }: Size): Composer {
  const memory = new KernelMemory()
  const module = new WebAssembly.Module(Buffer.from(KERNEL, 'base64'))
  const kernel = new WebAssembly.Instance(module, { env: { memory: memory.memory } })
    .exports as unknown as Kernel
  const from = memory.mark
  const targets = [targetOf(memory, width, height, 1), targetOf(memory, width / 2, height / 2, 2)] as const
  const length = memory.mark - from
  const held = memory.take(length)
  const [luma, chroma] = targets

  return {
    layer: (rgba, room) => layerFromRgba(memory, kernel, rgba, room),
    forget: ({ address, bytes }) => memory.giveBack(address, bytes),
    draw(views) {
      for (const [target, channelOf] of [
        [luma, (layer: Layer) => layer.luma],
        [chroma, (layer: Layer) => layer.chroma],
      ] as const) {
        const mark = memory.mark
        const plans = views.map(({ layer, window }) => planView(memory, channelOf(layer), window, target))
        composeChannel(memory, kernel, target, plans)
        memory.release(mark)
      }
    },
    hold: () => void memory.bytes.copyWithin(held, from, from + length),
    melt: (share) => kernel.melt(from, held, length, share),
    copyTo(frame) {
      let at = 0
      for (const { width: across, height: down, stride, planes } of targets) {
        for (const plane of planes) {
          // In one piece where the rows lie close together, as they do at all usual widths.
          const step = stride === across ? down : 1
          for (let row = 0; row < down; row += step, at += across * step) {
            const begin = plane + row * stride
            frame.set(memory.bytes.subarray(begin, begin + across * step), at)
          }
        }
      }
    },
  }
}

function targetOf(memory: KernelMemory, width: number, height: number, planes: number): Target {
  const stride = Math.ceil(width / BLOCK) * BLOCK
  return { width, height, stride, planes: Array.from({ length: planes }, () => memory.take(stride * height)) }
}

/** A channel of a layer, and which of its values a frame is made of: addresses of the plan. */
interface Planned {
  readonly channel: Channel
  readonly rows: number
  readonly blocks: number
}

function planView(memory: KernelMemory, channel: Channel, window: Window, target: Target): Planned {
  const rows = memory.push(rowBytes(target.height))
  const blocks = memory.push(blockBytes(target.stride))
  writeRows(planAxis(window.top, window.height, channel.height, target.height), memory.words, rows)
  const columns = planAxis(window.left, window.width, channel.width, target.width, target.stride)
  writeBlocks(columns, memory.words, memory.bytes, blocks)
  return { channel, rows, blocks }
}

function composeChannel(
  memory: KernelMemory,
  kernel: Kernel,
  { planes, stride, height }: Target,
  views: readonly Planned[],
): void {
  const table = memory.push(views.length * VIEW_WORDS * 4)
  const marks = memory.push(views.length)
  for (const [plane, target] of planes.entries()) {
    for (const [at, { channel, rows, blocks }] of views.entries()) {
      const { values, alpha, width, cells, cellsAcross } = channel
      memory.words.set(
        [values[plane] as number, alpha, width, rows, blocks, cells, cellsAcross],
        table / 4 + at * VIEW_WORDS,
      )
    }
    kernel.compose(table, views.length, marks, target, stride, height, stride / BLOCK)
  }
}
