// Plans a film: its shots, their lengths, framings and camera movements. Planes are drawn a little larger than the frame, and
// each is seen through its own window: near planes move more than far ones, which gives depth.

import { pick, randomFrom } from '../random.js'
import type { Size } from '../render-request.js'
import type { Framing } from '../scenery/stage.js'

export const FRAMES_PER_SECOND = 24

export interface Shot {
  /** Counted from 1. */
  readonly number: number
  readonly frames: number
  readonly framing: Framing
  readonly movement: Movement
  /** The transition from the shot before. */
  readonly entrance: 'cut' | 'dissolve'
  /** Which references it shows, by index. */
  readonly references: readonly number[]
}

type Rhythm = readonly number[]

// In whole seconds, since the encoder sets a key frame every second: cuts then fall on key frames.
const RHYTHMS: Readonly<Record<5 | 10, readonly [Rhythm, ...Rhythm[]]>> = {
  5: [
    [2, 1, 2],
    [2, 2, 1],
    [1, 2, 2],
  ],
  10: [
    [2, 2, 2, 2, 2],
    [3, 2, 1, 2, 2],
    [2, 1, 3, 2, 2],
    [3, 2, 2, 3],
  ],
}

const FRAMINGS: readonly Framing[] = ['wide', 'middle', 'close', 'middle', 'wide']
const MOVEMENTS = ['push', 'pull', 'left', 'right', 'rise'] as const

/** 5 s are 120 frames in three shots, 10 s are 240 frames in four or five. */
export function planShots(seed: string, seconds: 5 | 10, references: number): readonly Shot[] {
  const random = randomFrom(`${seed}\nshots`)
  const rhythm = pick(random, RHYTHMS[seconds])
  const first = Math.floor(random() * MOVEMENTS.length)
  return rhythm.map((length, index) => ({
    number: index + 1,
    frames: length * FRAMES_PER_SECOND,
    framing: FRAMINGS[index] ?? 'wide',
    // Steps of two through five movements: neighbours differ, and none comes twice in five shots.
    movement: MOVEMENTS[(first + index * 2) % MOVEMENTS.length] ?? 'push',
    entrance: index > 0 && random() < 0.5 ? 'dissolve' : 'cut',
    references: referencesOf(index, rhythm.length, references),
  }))
}

/**
 * Every reference is seen, and every shot shows one: with fewer references than shots they come round again, with more
 * they share the shots as evenly as possible.
 */
function referencesOf(shot: number, shots: number, references: number): readonly number[] {
  if (references === 0) return []
  if (references <= shots) return [shot % references]
  return Array.from({ length: references }, (_, index) => index).filter((index) => index % shots === shot)
}

export type Movement = 'push' | 'pull' | 'left' | 'right' | 'rise'

/** How much larger than the frame, in each direction, a plane is drawn. More gives more movement and costs memory. */
const OVERSCAN = 0.16

/** Shares of the plane: 0, 0, 1, 1 would be the whole of it. */
export interface Window {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/**
 * The size at which planes are drawn for a frame of `size`. Half of the added length is even on both axes, so an axis on
 * which the camera does not move falls on whole pixels of luma and chroma.
 */
export function stageSize(size: Size): Size {
  const grown = (length: number) => length + 4 * Math.ceil((length * OVERSCAN) / 4)
  return { width: grown(size.width), height: grown(size.height) }
}

/** `depth` 0 to 1 as the planes have it, `progress` 0 to 1 through the shot. The window never leaves the plane. */
export function windowOn(size: Size, movement: Movement, depth: number, progress: number): Window {
  const stage = stageSize(size)
  // The narrowest window: one pixel of the plane for one pixel of the frame.
  const width = size.width / stage.width
  const height = size.height / stage.height
  const time = ease(progress)
  const reach = 0.25 + 0.75 * depth
  if (movement === 'push' || movement === 'pull') {
    const closeness = reach * (movement === 'push' ? time : 1 - time)
    const across = 1 - (1 - width) * closeness
    const down = 1 - (1 - height) * closeness
    return { left: (1 - across) / 2, top: (1 - down) / 2, width: across, height: down }
  }
  const away = (time - 0.5) * reach
  const left = (1 - width) * (0.5 + (movement === 'right' ? away : movement === 'left' ? -away : 0))
  const top = (1 - height) * (0.5 - (movement === 'rise' ? away : 0))
  return { left, top, width, height }
}

/** Half linear, half eased, so that the camera never stops within a shot. */
function ease(progress: number): number {
  return 0.5 * progress + 0.5 * progress * progress * (3 - 2 * progress)
}
