// Draws one stage with its references and its card: a whole picture, or one shot of a film.
import type { Sharp } from 'sharp'
import type { Lettering } from './lettering/caption.js'
import { layPrints, type ReferenceImage } from './references.js'
import type { Size } from './render-request.js'
import { composeScene, type Scene, type Setting } from './scenery/scene.js'
import { type Area, pixels, stageSvg, type View } from './scenery/stage.js'
import { drawSubjectCard } from './scenery/subject-card.js'

export interface Shot extends Omit<View, 'hasReferences'> {
  readonly size: Size
  readonly number: number
  readonly references: readonly ReferenceImage[]
}

/** `overlay` draws on top of the stage, for example a caption. */
export async function drawShot(
  setting: Setting,
  { text, label }: Lettering,
  { size, number, references, ...view }: Shot,
  overlay: (scene: Scene) => string = () => '',
): Promise<Sharp> {
  const sharp = await pixels()
  const scene = composeScene(setting, size, number, { ...view, hasReferences: references.length > 0 })
  const { prints, card } = areasOf(scene, setting, references.length, view.cut)
  const drawing = scene.drawing + drawSubjectCard(card, text, setting) + overlay(scene)
  const ground = sharp(stageSvg(size, scene, drawing))
  return references.length === 0
    ? ground
    : ground.composite(await layPrints(references, size, scene, prints, setting.palette, label))
}

/** Returns the parts of the frame for the references and for the card: side by side, or one above the other. */
function areasOf(
  { width, height, freeSide }: Scene,
  { actors, reading }: Setting,
  count: number,
  cut: View['cut'],
) {
  const part = (x: number, y: number, across: number, down: number): Area => ({
    x: width * (cut.x + (1 - 2 * cut.x) * x),
    y: height * (cut.y + (1 - 2 * cut.y) * y),
    width: width * (1 - 2 * cut.x) * across,
    height: height * (1 - 2 * cut.y) * down,
  })
  const whole = part(0.15, 0.14, 0.7, 0.54)
  const hasSubject = actors.length > 0 || reading.unknownSubject !== undefined
  if (count === 0 || !hasSubject) return { prints: whole, card: whole }
  const isMany = count > 3
  if (height > width * 1.2)
    return { prints: part(0.1, 0.08, 0.8, isMany ? 0.34 : 0.26), card: part(0.05, 0.44, 0.9, 0.34) }
  const across = isMany ? 0.46 : 0.36
  const prints = part(freeSide > 0 ? 0.95 - across : 0.05, isMany ? 0.13 : 0.17, across, isMany ? 0.6 : 0.46)
  return { prints, card: part(freeSide > 0 ? 0.04 : across + 0.08, 0.15, 0.88 - across, 0.54) }
}
