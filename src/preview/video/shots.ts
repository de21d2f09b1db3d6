// Plans a film: the shots with their lengths, framings and camera movements. Planes are drawn slightly larger than the
// frame, and a window selects the visible part of each plane. Windows of near planes move more than windows of far
// planes, which gives depth.
import { pick, randomFrom } from '../random.js'
import type { Size } from '../render-request.js'
import type { Framing } from '../scenery/stage.js'

export const FRAMES_PER_SECOND = 24

export interface Shot {
  /** Number of the shot, counted from 1. */
  readonly number: number
  readonly frames: number
  readonly framing: Framing
  readonly movement: Movement
  /** Transition from the previous shot. */
  readonly entrance: 'cut' | 'dissolve'
  /** Indexes of the references in this shot. */
  readonly references: readonly number[]
}

type Rhythm = readonly number[]

// Lengths of shots in whole seconds: the encoder sets a key frame every second, so every cut is at a key frame.
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

/** Plans three shots (120 frames) for 5 s, and four or five shots (240 frames) for 10 s. */
export function planShots(seed: string, seconds: 5 | 10, references: number): readonly Shot[] {
  const random = randomFrom(`${seed}\nshots`)
  const rhythm = pick(random, RHYTHMS[seconds])
  const first = Math.floor(random() * MOVEMENTS.length)
  return rhythm.map((length, index) => ({
    number: index + 1,
    frames: length * FRAMES_PER_SECOND,
    framing: FRAMINGS[index] ?? 'wide',
    // Take every second of the five movements, so that no movement repeats within five shots.
    movement: MOVEMENTS[(first + index * 2) % MOVEMENTS.length] ?? 'push',
    entrance: index > 0 && random() < 0.5 ? 'dissolve' : 'cut',
    references: referencesOf(index, rhythm.length, references),
  }))
}

/**
 * Returns the references of a shot. Every reference is shown, and every shot shows at least one: with fewer references
 * than shots, references repeat; with more, they are distributed evenly over the shots.
 */
function referencesOf(shot: number, shots: number, references: number): readonly number[] {
  if (references === 0) return []
  if (references <= shots) return [shot % references]
  return Array.from({ length: references }, (_, index) => index).filter((index) => index % shots === shot)
}

export type Movement = 'push' | 'pull' | 'left' | 'right' | 'rise'

/**
 * Extra size of a plane in each direction, as a share of the frame. A larger value gives more movement and takes more
 * memory.
 */
const OVERSCAN = 0.16

/** The visible part of a plane, as shares of the plane. 0, 0, 1, 1 is the whole plane. */
export interface Window {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/**
 * Returns the size of the planes for a frame of `size`. Half of the extra length is even on both axes, so that an axis
 * without movement is aligned to whole pixels of luma and chroma.
 */
export function stageSize(size: Size): Size {
  const grown = (length: number) => length + 4 * Math.ceil((length * OVERSCAN) / 4)
  return { width: grown(size.width), height: grown(size.height) }
}

/**
 * Returns the window at `progress` (0 to 1) of the shot, for a plane of this `depth` (0 to 1). The window is always
 * within the plane.
 */
export function windowOn(size: Size, movement: Movement, depth: number, progress: number): Window {
  const stage = stageSize(size)
  // The smallest window: one pixel of the plane for each pixel of the frame.
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

/** Half linear, half eased, so that the camera never stops during a shot. */
function ease(progress: number): number {
  return 0.5 * progress + 0.5 * progress * progress * (3 - 2 * progress)
}
