/**
 * Finds the slots of a workflow without a document: from each sampler along its links to the text encoder of the
 * positive prompt and to the node with the size. A slot that is not unambiguous is a problem, never a guess.
 */
import { type Slot, slotText, type Workflow } from './workflow.js'

export interface FoundSlots {
  readonly slots: Readonly<Record<string, readonly Slot[]>>
  readonly problems: readonly string[]
}

const SAMPLER = /sampler|guider/i
/** Inputs that pass a condition on to the sampler. */
const CONDITION_INPUT = /^(positive|conditioning)/
const LATENT_INPUT = /^(latent_image|samples|latent)$/
const TEXT_INPUTS = ['text', 'prompt', 'text_g', 'text_l', 'clip_l', 't5xxl']
/** The input of nodes that only hold a value. */
const VALUE_INPUTS = ['value', 'string', 'text']

export function findSlots(workflow: Workflow): FoundSlots {
  const ids = Object.keys(workflow)
  const samplers = ids.filter((id) => SAMPLER.test(workflow[id]?.class_type ?? ''))
  const literals = (id: string, names: readonly string[], type: string): readonly Slot[] =>
    names.flatMap((name) => literalSlot(workflow, { node: id, keys: [name] }, type) ?? [])
  const isSized = (id: string): boolean => literals(id, ['width', 'height'], 'number').length === 2
  const isEncoder = (id: string): boolean => literals(id, TEXT_INPUTS, 'string').length > 0
  const isImage = (id: string): boolean => /^LoadImage/.test(workflow[id]?.class_type ?? '')
  const problems: string[] = []

  function only(what: string, found: readonly string[], others: readonly string[]): readonly string[] {
    if (found.length === 1) return found
    const names = (found.length > 0 ? found : others).map((id) => `${id} ${workflow[id]?.class_type}`)
    const candidates = `(candidates: ${names.join(', ') || 'none'})`
    problems.push(`has ${found.length === 0 ? 'no node' : 'more than one node'} for ${what} ${candidates}`)
    return []
  }

  const encoders = reached(workflow, samplers, CONDITION_INPUT, isEncoder)
  const encoder = only('the prompt', encoders, ids.filter(isEncoder))
  const size = only('the size', reached(workflow, samplers, LATENT_INPUT, isSized), ids.filter(isSized))
  const images = ids.filter(isImage)
  const image = images.length === 0 ? images : only('the reference image', images, [])
  const slots: Readonly<Record<string, readonly Slot[]>> = {
    prompt: encoder.flatMap((id) => literals(id, TEXT_INPUTS, 'string')),
    width: size.flatMap((id) => literals(id, ['width'], 'number')),
    height: size.flatMap((id) => literals(id, ['height'], 'number')),
    frames: size.flatMap((id) => literals(id, ['length'], 'number')),
    seed: ids.flatMap((id) => literals(id, ['seed', 'noise_seed'], 'number')),
    references: image.flatMap((id) => literals(id, ['image'], 'string')),
  }
  const found = Object.entries(slots).filter(([, each]) => each.length > 0)
  return { slots: Object.fromEntries(found.map(([name, each]) => [name, unique(each)])), problems }
}

/** Several inputs may get their value from the same node. */
const unique = (slots: readonly Slot[]): readonly Slot[] => [
  ...new Map(slots.map((slot) => [slotText(slot), slot])).values(),
]

/** Returns the frame rate that the workflow writes into its video, if it is one number. */
export function frameRateOf(workflow: Workflow): number | undefined {
  const rates = Object.keys(workflow).flatMap((node) =>
    ['fps', 'frame_rate'].flatMap((name) => {
      const slot = literalSlot(workflow, { node, keys: [name] }, 'number')
      return slot === undefined ? [] : [workflow[slot.node]?.inputs[slot.keys[0] ?? '']]
    }),
  )
  const [rate] = rates
  return typeof rate === 'number' && rates.every((each) => each === rate) ? rate : undefined
}

/** Returns the first nodes that satisfy `isFound` on all paths against the links, starting with the inputs of `from`. */
function reached(
  workflow: Workflow,
  from: readonly string[],
  input: RegExp,
  isFound: (id: string) => boolean,
): readonly string[] {
  const found = new Set<string>()
  const seen = new Set<string>()
  const waiting = [...from]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    for (const [name, value] of Object.entries(workflow[id]?.inputs ?? {})) {
      const next = input.test(name) ? linkedNode(workflow, value) : undefined
      if (next === undefined) continue
      if (isFound(next)) found.add(next)
      else waiting.push(next)
    }
  }
  return [...found]
}

/** Returns the node of a link (`["4", 0]`). */
const linkedNode = (workflow: Workflow, value: unknown): string | undefined =>
  Array.isArray(value) && typeof value[0] === 'string' && Object.hasOwn(workflow, value[0])
    ? value[0]
    : undefined

/** Returns the input if it holds a value of this type, or the input of the node that it is connected to. */
function literalSlot(workflow: Workflow, slot: Slot, type: string): Slot | undefined {
  const inputs = workflow[slot.node]?.inputs ?? {}
  const [name = ''] = slot.keys
  if (!Object.hasOwn(inputs, name)) return undefined
  if (typeof inputs[name] === type) return slot
  const node = linkedNode(workflow, inputs[name])
  const held = VALUE_INPUTS.find((each) => typeof workflow[node ?? '']?.inputs[each] === type)
  return node === undefined || held === undefined ? undefined : { node, keys: [held] }
}
