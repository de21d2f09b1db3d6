// The layers of one shot, drawn at the size of the stage and made ready for composing.
import type { OverlayOptions } from 'sharp'
import { drawCaption, type Lettering } from '../lettering/caption.js'
import type { Palette } from '../palette.js'
import { layPrints } from '../references/prints.js'
import { backdropOf, type Reference } from '../references/reference.js'
import { composeScene } from '../scenery/scene.js'
import type { Setting } from '../scenery/setting.js'
import type { Framing } from '../scenery/stage.js'
import { pixels, stageSvg } from '../scenery/svg.js'
import type { Size } from '../sizes.js'
import { stageSize } from './camera.js'
import { type Layer, layerFromRgba } from './layer.js'
import type { Shot } from './shots.js'

export interface Film {
  readonly setting: Setting
  readonly size: Size
  readonly lettering: Lettering
  readonly references: readonly Reference[]
  readonly shots: readonly Shot[]
}

/** So much of the stage's sides does the camera leave out where it moves most. */
const PRINT_SIDE = 0.12
const CLOSENESS: Readonly<Record<Framing, number>> = { wide: 1, middle: 1.35, close: 1.9 }

/** Out of focus, being furthest and nearest: drawn at half the size, which is also a quarter of the work. */
const SOFT: ReadonlySet<string> = new Set(['sky', 'front'])
const halfOf = ({ width, height }: Size): Size => ({ width: width / 2, height: height / 2 })

/** A layer and how far it follows the camera; `depth` is undefined for what stands still, the lettering. */
export interface StagedLayer {
  readonly layer: Layer
  readonly depth: number | undefined
}

/** The furthest first. About 8 MiB for each of five layers at 1080p, and they live for one shot. */
export async function setStage(film: Film, shot: Shot, signal: AbortSignal): Promise<readonly StagedLayer[]> {
  const { setting, size, lettering } = film
  const { palette, seed: prompt } = setting
  const stage = stageSize(size)
  const shown = shot.references.flatMap((index) => film.references[index] ?? [])
  const cast = shown.length > 0 ? [] : setting.actors
  const scene = composeScene(
    { ...setting, actors: cast },
    { size, framing: shot.framing, number: shot.number },
  )
  const only = backdropOf(shown, size)

  signal.throwIfAborted()
  const label = `${shot.number} / ${film.shots.length}`
  const caption = paintLayer(size, [
    { input: stageSvg(size, scene, drawCaption(scene, lettering, palette, { prompt, label })) },
  ])
  const layers =
    only === undefined
      ? scene.planes.map(async ({ name, drawing, depth }) => {
          const room = SOFT.has(name) ? halfOf(stage) : stage
          return { layer: await paintLayer(room, [{ input: stageSvg(room, scene, drawing) }]), depth }
        })
      : // A single reference is the shot (image to video), from as near as the shot is framed.
        [paintOnly(only, stage, CLOSENESS[shot.framing])]
  const prints = only === undefined && shown.length > 0 ? [paintPrints(shown, stage, palette, lettering)] : []
  return await Promise.all([...layers, ...prints, caption.then((layer) => ({ layer, depth: undefined }))])
}

async function paintOnly(
  fill: NonNullable<Reference['fill']>,
  stage: Size,
  closeness: number,
): Promise<StagedLayer> {
  const input = await fill(stage.width, stage.height, closeness)
  return { layer: await paintLayer(stage, [{ input }]), depth: 0.35 }
}

async function paintPrints(
  shown: readonly Reference[],
  stage: Size,
  palette: Palette,
  lettering: Lettering,
): Promise<StagedLayer> {
  return {
    layer: await paintLayer(stage, await layPrints(shown, stage, palette, lettering.label, PRINT_SIDE)),
    depth: 0.5,
  }
}

/** sharp lays out the bytes of an SVG at its own size; several drawings are composited onto an empty canvas first. */
async function paintLayer(size: Size, drawings: readonly OverlayOptions[]): Promise<Layer> {
  const sharp = await pixels()
  const only = drawings.length === 1 ? drawings[0]?.input : undefined
  const canvas = Buffer.isBuffer(only)
    ? sharp(only).ensureAlpha()
    : sharp({ create: { ...size, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } }).composite([
        ...drawings,
      ])
  return layerFromRgba(await canvas.raw().toBuffer(), size)
}
