// Plans a film: its shots, their lengths, framings and camera movements.
import { pick, randomFrom } from '../random.js'
import type { Framing } from '../scenery/stage.js'
import type { Movement } from './camera.js'

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
