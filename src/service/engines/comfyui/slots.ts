/** The slots of a document: which inputs of the workflow get which values of a run. */
import { randomInt } from 'node:crypto'
import { IMAGE_URLS } from '../../../protocol/media-parameters.js'
import type { ModelDocument, ModelSchema, ParameterSchema } from '../../../protocol/models.js'
import type { RenderJob } from '../engine.js'
import type { EngineSettings } from '../settings.js'
import { readSizes, type Sizes } from '../sizes.js'
import { findSlots } from './find-slots.js'
import { findSlot, type Slot, type SlotValue, type Workflow } from './workflow.js'

type Slots = Readonly<Record<string, readonly Slot[]>>

/** Values that follow from several properties, or from none. A property of the same name has precedence. */
const DERIVED = ['width', 'height', 'seed', 'references'] as const

export interface ReadSlots {
  readonly slots: Slots
  /** Undefined if no slot needs a size. */
  readonly sizeOf: Sizes['sizeOf'] | undefined
}

/**
 * Reads `slots` and `sizes`. Without `slots`, they are found in the workflow. Leaves out a property without a slot: it
 * would have no effect. `given`: undefined if its file is missing or has a problem.
 */
export function readSlots(
  settings: EngineSettings,
  document: ModelDocument,
  given: Workflow | undefined,
): ReadSlots {
  const { properties } = document.input
  const named = Object.entries(settings.map('slots'))
  const isNamed = named.length > 0
  const slots = isNamed ? namedSlots(named, settings, properties, given) : foundSlots(settings, given ?? {})
  const has = (name: string) => Object.hasOwn(slots, name)
  const sizes = readSizes(settings, document, Object.keys(slots))
  const read = { slots, sizeOf: has('width') ? sizes.sizeOf : undefined }
  if (has('width') !== has('height'))
    settings.report(['slots'], 'needs both "width" and "height", or neither')
  // The problem of the workflow is reported already.
  if (!isNamed && settings.hasProblem(['workflow'])) return read
  if (!has('width') && Object.keys(settings.map('sizes')).length > 0)
    settings.reportNew(
      ['sizes'],
      'has no effect: give the node with the size of the picture the title "size", or add the slots width and height',
    )
  const wanted = slots.references?.length ?? 0
  const { [IMAGE_URLS]: images } = properties
  if (wanted > 0 && images?.type === 'array')
    settings.offer(IMAGE_URLS, { ...images, maxItems: wanted }, true)
  if (has('seed')) settings.offer('seed', SEED)
  const derived = [...(has('width') ? sizes.parameters : []), ...(has('references') ? [IMAGE_URLS] : [])]
  for (const name of Object.keys(properties))
    if (!has(name) && !derived.includes(name) && !settings.hasProblem(['slots', name])) {
      const advice =
        name === 'prompt'
          ? 'Give its node the title "prompt" in ComfyUI, or add it'
          : 'Add it, or remove the property from the input'
      settings.leaveOut(name, ['slots'], `has none for the property "${name}". ${advice}`)
    }
  return read
}

/** `workflow`: undefined if its file has a problem, which was reported. */
function namedSlots(
  entries: readonly (readonly [string, unknown])[],
  settings: EngineSettings,
  properties: ModelSchema['properties'],
  workflow: Workflow | undefined,
): Slots {
  const slots: Record<string, readonly Slot[]> = Object.create(null)
  for (const [name, value] of entries) {
    const isKnown = Object.hasOwn(properties, name) && name !== IMAGE_URLS
    if (!isKnown && !DERIVED.some((each) => each === name)) {
      const known = `is neither a property of the input nor one of ${DERIVED.join(', ')}`
      settings.report(['slots', name], known)
      continue
    }
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
    const found = workflow ? texts.map((text) => findSlot(workflow, String(text))) : []
    slots[name] = found.flatMap((slot) => (slot.ok ? [slot.value] : []))
    for (const [index, slot] of found.entries())
      if (!slot.ok) settings.report(['slots', name, ...(Array.isArray(value) ? [index] : [])], slot.wrong)
    // A list would be a link between two nodes.
    if (['array', 'other'].includes(properties[name]?.type ?? ''))
      settings.report(['slots', name], 'needs a property of type string, integer, number or boolean')
  }
  return slots
}

function foundSlots(settings: EngineSettings, workflow: Workflow): Slots {
  const { slots, problems } = findSlots(workflow)
  if (problems.length > 0)
    settings.report(
      ['workflow'],
      `${problems.join(', and ')}. Give the right node a title in ComfyUI, such as prompt or reference 1, ` +
        'or name the inputs in a model file: slots: { prompt: 6.inputs.text, … }',
    )
  return slots
}

/** ComfyUI takes 64 bits. */
const SEED: ParameterSchema = {
  type: 'integer',
  minimum: 0,
  maximum: 2n ** 64n - 1n,
  description: 'Seed; random if not set',
}
/** As the service draws it for a model with a parameter for it. */
const MAX_SEED = 2 ** 31

/**
 * Returns the value of each slot. A property without a value keeps the value of the workflow, but for the seed: with
 * the same seed, the server would return an earlier result. `images`: names of the uploaded references on the server. The
 * input has the names of other media.
 */
export function slotValues(
  { slots, sizeOf }: ReadSlots,
  input: RenderJob['input'],
  images: readonly string[],
): readonly SlotValue[] {
  const derived: Readonly<Record<string, unknown>> = {
    ...sizeOf?.(input),
    seed: randomInt(0, MAX_SEED),
  }
  return Object.entries(slots).flatMap(([name, each]): readonly SlotValue[] => {
    if (name === 'references') return each.map((slot, index) => ({ slot, value: images[index] }))
    const value = input[name] ?? derived[name]
    return value === undefined ? [] : each.map((slot) => ({ slot, value }))
  })
}

/** Throws unless each reference has a slot and each slot a reference: the workflow's own picture would be drawn. */
export function checkReferences(count: number, { slots: { references = [] } }: ReadSlots): void {
  const wanted = references.length
  if (count !== wanted)
    throw new Error(
      `This model's workflow takes exactly ${wanted} reference image${wanted === 1 ? '' : 's'}; the run has ${count}.`,
    )
}
