// A whole scene: sky, three planes, the subject on one of them. Pure: the same arguments, the same drawing.
import type { Palette } from '../palette.js'
import { between, pick, randomFrom } from '../random.js'
import type { Size } from '../sizes.js'
import type { Place } from '../vocabulary.js'
import type { Reading } from '../words.js'
import { PLACES } from './places.js'
import { heightAt } from './ridge.js'
import { drawSky } from './sky.js'
import type { Framing, Plane, Stage } from './stage.js'
import { drawSubject, shapeFor } from './subjects.js'

export interface Scene {
  /** Stage units: the shorter side is 1000. */
  readonly width: number
  readonly height: number
  /** The furthest first; the first one leaves nothing uncovered. */
  readonly planes: readonly Plane[]
}

const FRAMINGS: Readonly<Record<Framing, { horizon: number; scale: number; subject: number }>> = {
  wide: { horizon: 0.56, scale: 1, subject: 150 },
  middle: { horizon: 0.52, scale: 1.3, subject: 270 },
  close: { horizon: 0.6, scale: 1.8, subject: 470 },
}

const FLYING: ReadonlySet<string> = new Set(['bird', 'balloon'])

/**
 * `seed` fixes every die; `view` fixes those that change from shot to shot (where the hills run, where the subject
 * stands), so that the shots of one film share place and subject but not the standpoint.
 */
export function composeScene(
  prompt: { readonly seed: string; readonly reading: Reading; readonly palette: Palette },
  view: { readonly size: Size; readonly framing: Framing; readonly number: number },
): Scene {
  const shared = randomFrom(`${prompt.seed}\nplace`)
  const place = prompt.reading.place ?? placeWithout(shared, prompt.reading)
  const shape = shapeFor(prompt.reading.subject, shared)
  const random = randomFrom(`${prompt.seed}\nview ${view.number}`)

  const unit = 1000 / Math.min(view.size.width, view.size.height)
  const width = view.size.width * unit
  const height = view.size.height * unit
  const framing = FRAMINGS[view.framing]
  const horizon = height * framing.horizon
  const stage: Stage = { width, height, horizon, scale: framing.scale, place, palette: prompt.palette }

  const sky = drawSky(stage, random)
  const land = PLACES[place](stage, random)
  const x = width * between(random, 0.28, 0.72)
  // Above the caption, which has more lines in a tall frame; a film's window besides cuts up to 7% off.
  const standing = Math.min(heightAt(land.stand, x) + 4, height * 0.93 - (height > width ? 300 : 150))
  const foot = FLYING.has(shape) ? horizon * between(random, 0.55, 0.9) : standing
  const room = Math.min(1, width / 700, foot / 520)
  const subject = drawSubject(shape, prompt.palette, x, foot, framing.subject * room, random() < 0.5)
  // What stands on the far side of the near plane's line is covered by it; a street, a floor or water is not.
  const inFront = place === 'city' || place === 'studio' || place === 'sea' || place === 'forest'

  return {
    width,
    height,
    planes: [
      { name: 'sky', depth: 0.05, drawing: sky },
      { name: 'far', depth: 0.3, drawing: land.far },
      { name: 'middle', depth: 0.6, drawing: inFront ? land.middle : `${land.middle}${subject}` },
      { name: 'near', depth: 1, drawing: inFront ? `${land.near}${subject}` : land.near },
    ],
  }
}

function placeWithout(random: () => number, { subject }: Reading): Place {
  if (subject === 'boat') return 'sea'
  if (subject === 'vehicle') return pick(random, ['city', 'hills', 'desert'] as const)
  return pick(random, ['mountains', 'hills', 'sea', 'city', 'forest', 'desert', 'studio', 'hills'] as const)
}
