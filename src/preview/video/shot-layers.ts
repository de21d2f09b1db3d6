// Draws the layers of one shot, at the size of the stage.
import type { OverlayOptions } from 'sharp'
import { drawCaption, type Lettering } from '../lettering/caption.js'
import { backdropOf, type ReferenceImage } from '../references/open-references.js'
import { layPrints } from '../references/prints.js'
import { composeScene } from '../scenery/scene.js'
import type { Setting } from '../scenery/scene-setting.js'
import type { Framing } from '../scenery/stage.js'
import { pixels, stageSvg } from '../scenery/svg.js'
import type { Size } from '../sizes.js'
import { stageSize } from './camera.js'
import { type FilmLayer, layerFromRgba } from './film-layer.js'
import type { Shot } from './shots.js'

export interface Film {
  readonly setting: Setting
  readonly size: Size
  readonly lettering: Lettering
  readonly references: readonly ReferenceImage[]
  readonly shots: readonly Shot[]
}

/** The share of the stage's sides that the camera may leave out. */
const PRINT_SIDE = 0.12
const CLOSENESS: Readonly<Record<Framing, number>> = { wide: 1, middle: 1.35, close: 1.9 }

/** The size at which a reference that fills a film of `size` is seen in the closest shot. */
export function closestSize(size: Size): Size {
  const stage = stageSize(size)
  return { width: stage.width * CLOSENESS.close, height: stage.height * CLOSENESS.close }
}

/** The furthest and the nearest plane are out of focus: drawn at half the size, for a quarter of the work. */
const SOFT: ReadonlySet<string> = new Set(['sky', 'front'])
const halfOf = ({ width, height }: Size): Size => ({ width: width / 2, height: height / 2 })

/** A layer and how far it follows the camera; `depth` is undefined for the caption, which does not move. */
export interface ShotLayer {
  readonly layer: FilmLayer
  readonly depth: number | undefined
}

export interface LayerOptions {
  /** How many layers are drawn at once. Each takes up to 30 MiB while it is drawn. */
  readonly atOnce: number
  readonly signal: AbortSignal
}

/** A layer to be drawn. */
interface Painting {
  readonly size: Size
  readonly depth: number | undefined
  draw(): Promise<readonly OverlayOptions[]>
}

/** The furthest first. About 8 MiB for each of five layers at 1080p. */
export async function drawShotLayers(
  film: Film,
  shot: Shot,
  { atOnce, signal }: LayerOptions,
): Promise<readonly ShotLayer[]> {
  const paintings = paintingsOf(film, shot)
  const layers: ShotLayer[] = []
  const turns = paintings.entries()
  async function takeTurns(): Promise<void> {
    for (const [at, { size, depth, draw }] of turns) {
      signal.throwIfAborted()
      layers[at] = { layer: layerFromRgba(await paint(size, await draw()), size), depth }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, takeTurns))
  return layers
}

function paintingsOf(film: Film, shot: Shot): readonly Painting[] {
  const { setting, size, lettering } = film
  const { palette, prompt } = setting
  const stage = stageSize(size)
  const shown = shot.references.flatMap((index) => film.references[index] ?? [])
  const cast = shown.length > 0 ? [] : setting.actors
  const scene = composeScene(
    { ...setting, actors: cast },
    { size, framing: shot.framing, number: shot.number },
  )
  const only = backdropOf(shown, size)
  const label = `${shot.number} / ${film.shots.length}`
  const words = { prompt, label, isOverPicture: only !== undefined }
  const caption: Painting = {
    size,
    depth: undefined,
    draw: async () => [{ input: stageSvg(size, scene, drawCaption(scene, lettering, palette, words)) }],
  }
  if (only !== undefined) {
    // A single reference fills the shot (image to video), cropped by its framing.
    const draw = async () => [{ input: await only(stage.width, stage.height, CLOSENESS[shot.framing]) }]
    return [{ size: stage, depth: 0.35, draw }, caption]
  }
  const planes = scene.planes.map(({ name, drawing, depth }): Painting => {
    const room = SOFT.has(name) ? halfOf(stage) : stage
    return { size: room, depth, draw: async () => [{ input: stageSvg(room, scene, drawing) }] }
  })
  const prints: Painting = {
    size: stage,
    depth: 0.5,
    draw: () => layPrints(shown, stage, palette, lettering.label, PRINT_SIDE),
  }
  return [...planes, ...(shown.length > 0 ? [prints] : []), caption]
}

/** sharp lays out the bytes of an SVG at its own size; several drawings are composited onto an empty canvas first. */
async function paint(size: Size, drawings: readonly OverlayOptions[]): Promise<Buffer> {
  const sharp = await pixels()
  const only = drawings.length === 1 ? drawings[0]?.input : undefined
  const canvas = Buffer.isBuffer(only)
    ? sharp(only).ensureAlpha()
    : sharp({ create: { ...size, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } }).composite([
        ...drawings,
      ])
  return await canvas.raw().toBuffer()
}
