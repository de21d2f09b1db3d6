// Frames from the layers of a shot, in I420. The plan of a frame is made here, the bytes are moved by the kernel
// (assembly/compose.ts). For each tile drawing begins at the uppermost layer that covers it wholly, so that a hidden sky
// costs nothing, and a layer that is empty there is passed over. sharp would need RGBA frames and a conversion of each.
import type { Size } from '../sizes.js'
import type { Window } from './camera.js'
import { KERNEL } from './kernel.js'
import { CELL, type Channel, EMPTY, type Layer, MIXED, OPAQUE } from './layer.js'
import { KernelMemory } from './memory.js'
import { type Axis, BLOCK, blockBytes, planAxis, rowBytes, writeBlocks, writeRows } from './plan.js'

/** The planes of one frame: width x height bytes of luma, then U and V at a quarter of that each. */
export type Frame = Uint8Array

export interface Composer {
  /** Takes the layers of a shot, the furthest first, which has to cover everything; those before are forgotten. */
  stage(layers: readonly Layer[]): void
  /** Draws a frame; for each layer the part of it that fills the frame. */
  draw(windows: readonly Window[]): void
  /** Keeps the frame that was drawn last, for `melt`. */
  hold(): void
  /** Makes the frame `share` of 256 what is held. */
  melt(share: number): void
  copyTo(frame: Frame): void
}

interface Kernel {
  lay(
    values: number,
    alpha: number,
    stride: number,
    target: number,
    targetStride: number,
    rows: number,
    blocks: number,
    top: number,
    bottom: number,
    from: number,
    to: number,
  ): void
  melt(frame: number, held: number, length: number, share: number): void
}

interface Staged {
  readonly channel: Channel
  readonly values: readonly number[]
  readonly alpha: number
}

/** One kind of channel (luma, or both colour differences) of the frame. */
interface Target {
  readonly width: number
  readonly height: number
  readonly stride: number
  readonly planes: readonly number[]
}

// Wide, so that the loops within have some length; low, because a horizon is.
const TILE_BLOCKS = 4
const TILE_ROWS = 16

export function createComposer({ width, height }: Size): Composer {
  const memory = new KernelMemory()
  const module = new WebAssembly.Module(Buffer.from(KERNEL, 'base64'))
  const kernel = new WebAssembly.Instance(module, { env: { memory: memory.memory } })
    .exports as unknown as Kernel
  const from = memory.mark
  const targets = [targetOf(memory, width, height, 1), targetOf(memory, width / 2, height / 2, 2)] as const
  const length = memory.mark - from
  const held = memory.take(length)
  const start = memory.mark
  let staged: (readonly [Staged, Staged])[] = []

  return {
    stage(layers) {
      memory.release(start)
      staged = layers.map(({ luma, chroma }) => [stageChannel(memory, luma), stageChannel(memory, chroma)])
    },
    draw(windows) {
      const mark = memory.mark
      for (const [index, target] of targets.entries()) {
        const views = windows.map((window, at) => planView(memory, staged[at]?.[index], window, target))
        composeChannel(kernel, target, views)
      }
      memory.release(mark)
    },
    hold: () => void memory.bytes.copyWithin(held, from, from + length),
    melt: (share) => kernel.melt(from, held, length, share),
    copyTo(frame) {
      let at = 0
      for (const { width: across, height: down, stride, planes } of targets) {
        for (const plane of planes) {
          for (let row = 0; row < down; row++, at += across) {
            const begin = plane + row * stride
            frame.set(memory.bytes.subarray(begin, begin + across), at)
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

function stageChannel(memory: KernelMemory, channel: Channel): Staged {
  return {
    channel,
    values: channel.values.map((value) => memory.put(value)),
    alpha: memory.put(channel.alpha),
  }
}

interface View extends Staged {
  readonly columns: Axis
  readonly lines: Axis
  /** Addresses of the plan. */
  readonly rows: number
  readonly blocks: number
}

function planView(memory: KernelMemory, staged: Staged | undefined, window: Window, target: Target): View {
  if (staged === undefined) throw new RangeError('a window without a layer')
  const { channel } = staged
  const columns = planAxis(window.left, window.width, channel.width, target.width, target.stride)
  const lines = planAxis(window.top, window.height, channel.height, target.height)
  const rows = memory.take(rowBytes(target.height))
  const blocks = memory.take(blockBytes(target.stride))
  writeRows(lines, memory.words, rows)
  writeBlocks(columns, memory.words, memory.bytes, blocks)
  return { ...staged, columns, lines, rows, blocks }
}

function composeChannel(kernel: Kernel, target: Target, views: readonly View[]): void {
  const blocks = target.stride / BLOCK
  const coverages = new Uint8Array(views.length)
  for (let top = 0; top < target.height; top += TILE_ROWS) {
    const bottom = Math.min(top + TILE_ROWS, target.height)
    for (let from = 0; from < blocks; from += TILE_BLOCKS) {
      const to = Math.min(from + TILE_BLOCKS, blocks)
      let index = views.length
      do {
        index--
        coverages[index] = coverage(views[index] as View, top, bottom, from * BLOCK, to * BLOCK)
      } while (index > 0 && coverages[index] !== OPAQUE)
      for (; index < views.length; index++) {
        if (coverages[index] === EMPTY) continue
        const view = views[index] as View
        const alpha = coverages[index] === OPAQUE ? 0 : view.alpha
        for (const [plane, values] of view.values.entries()) {
          const address = target.planes[plane] as number
          kernel.lay(
            values,
            alpha,
            view.channel.width,
            address,
            target.stride,
            view.rows,
            view.blocks,
            top,
            bottom,
            from,
            to,
          )
        }
      }
    }
  }
}

/** How much of a tile a layer covers: EMPTY, MIXED or OPAQUE. */
function coverage(
  { channel, columns, lines }: View,
  top: number,
  bottom: number,
  left: number,
  right: number,
): number {
  const { cells, cellsAcross } = channel
  const firstColumn = Math.floor((columns.whole[left] as number) / CELL)
  const lastColumn = Math.floor(((columns.whole[right - 1] as number) + 1) / CELL)
  const firstRow = Math.floor((lines.whole[top] as number) / CELL)
  const lastRow = Math.floor(((lines.whole[bottom - 1] as number) + 1) / CELL)
  const first = cells[firstRow * cellsAcross + firstColumn] as number
  for (let row = firstRow; row <= lastRow; row++) {
    for (let column = firstColumn; column <= lastColumn; column++) {
      if (cells[row * cellsAcross + column] !== first) return MIXED
    }
  }
  return first
}
