/**
 * Finds the slots of a workflow without a document: nodes by their titles, else from each sampler along its links to the
 * text encoders, the size and the schedule. A slot that is not unambiguous is a problem, never a guess.
 */
import { type Slot, slotText, type Workflow } from './workflow.js'

export interface FoundSlots {
  readonly slots: Readonly<Record<string, readonly Slot[]>>
  readonly problems: readonly string[]
  /** Optional parameters with several nodes, which keep their values: `steps (nodes 3 KSampler, 11 KSampler)`. */
  readonly unclear: readonly string[]
}

const SAMPLER = /sampler|guider/i
/** Inputs that pass a condition on to the sampler. */
const CONDITION_INPUT = /^(positive|conditioning)/
const NEGATIVE_INPUT = /^(negative|conditioning)/
const LATENT_INPUT = /^(latent_image|samples|latent)$/
const SCHEDULE_INPUT = /^sigmas$/
const TEXT_INPUTS = ['text', 'prompt', 'text_g', 'text_l', 'clip_l', 't5xxl']
/** The input of nodes that only hold a value. */
const VALUE_INPUTS = ['value', 'string', 'text']

/** By slot: the inputs of a node that may hold its value, and their type. */
const INPUTS: Readonly<Record<string, { readonly names: readonly string[]; readonly type: string }>> = {
  prompt: { names: TEXT_INPUTS, type: 'string' },
  negative_prompt: { names: TEXT_INPUTS, type: 'string' },
  width: { names: ['width'], type: 'number' },
  height: { names: ['height'], type: 'number' },
  frames: { names: ['length', 'frames', 'num_frames'], type: 'number' },
  seed: { names: ['seed', 'noise_seed'], type: 'number' },
  steps: { names: ['steps'], type: 'number' },
  guidance: { names: ['guidance', 'cfg'], type: 'number' },
  references: { names: ['image'], type: 'string' },
}

export function findSlots(workflow: Workflow): FoundSlots {
  const ids = Object.keys(workflow)
  const titled = titledSlots(workflow)
  const samplers = ids.filter((id) => SAMPLER.test(workflow[id]?.class_type ?? ''))
  const literals = (id: string, names: readonly string[], type: string): readonly Slot[] =>
    names.flatMap((name) => literalSlot(workflow, { node: id, keys: [name] }, type) ?? [])
  const isSized = (id: string): boolean => literals(id, ['width', 'height'], 'number').length === 2
  const isEncoder = (id: string): boolean => literals(id, TEXT_INPUTS, 'string').length > 0
  const isImage = (id: string): boolean => /^LoadImage/.test(workflow[id]?.class_type ?? '')
  const has = (name: string) => (id: string) => literals(id, [name], 'number').length > 0
  const namesOf = (nodes: readonly string[]) =>
    nodes.map((id) => `${id} ${workflow[id]?.class_type}`).join(', ') || 'none'
  const problems: string[] = []
  const unclear: string[] = []

  function only(what: string, found: readonly string[], others: readonly string[]): readonly string[] {
    if (found.length === 1) return found
    const candidates = `(candidates: ${namesOf(found.length > 0 ? found : others)})`
    problems.push(`has ${found.length === 0 ? 'no node' : 'more than one node'} for ${what} ${candidates}`)
    return []
  }

  /** Several inputs with the same value get the same new one. */
  function alike(name: string, slots: readonly Slot[]): readonly Slot[] {
    const values = new Set(slots.map((slot) => valueAt(workflow, slot)))
    if (values.size <= 1) return slots
    unclear.push(`${name} (nodes ${namesOf([...new Set(slots.map(({ node }) => node))])})`)
    return []
  }

  const encoders = reached(workflow, samplers, CONDITION_INPUT, isEncoder)
  const isFound = (...names: readonly string[]) => names.every((name) => Object.hasOwn(titled, name))
  const encoder = isFound('prompt') ? [] : only('the prompt', encoders, ids.filter(isEncoder))
  // The condition of a sampler without a negative prompt may be made from the positive one.
  const negative = reached(workflow, samplers, NEGATIVE_INPUT, isEncoder, /^negative/)
    .filter((id) => !encoders.includes(id))
    .flatMap((id) => literals(id, TEXT_INPUTS, 'string'))
  const sizes = reached(workflow, samplers, LATENT_INPUT, isSized)
  const sized = ids.filter(isSized)
  // Without any node that has a size, the reference image has it.
  const needsSize = !isFound('width', 'height') && sized.length > 0
  const size = needsSize ? only('the size', sizes, sized) : []
  const images = ids.filter(isImage)
  const image = images.length === 0 || isFound('references') ? [] : only('the reference image', images, [])
  const schedules = [...samplers, ...reached(workflow, samplers, SCHEDULE_INPUT, has('steps'))]
  const guided = reached(workflow, samplers, CONDITION_INPUT, has('guidance'))
  const guidance = guided.length > 0 ? { of: guided, name: 'guidance' } : { of: samplers, name: 'cfg' }
  const numbers = (of: readonly string[], name: string) => of.flatMap((id) => literals(id, [name], 'number'))
  const slots: Readonly<Record<string, readonly Slot[]>> = {
    prompt: encoder.flatMap((id) => literals(id, TEXT_INPUTS, 'string')),
    negative_prompt: isFound('negative_prompt') ? [] : alike('negative_prompt', negative),
    width: numbers(size, 'width'),
    height: numbers(size, 'height'),
    frames: numbers(size, 'length'),
    seed: ids.flatMap((id) => literals(id, ['seed', 'noise_seed'], 'number')),
    steps: isFound('steps') ? [] : alike('steps', numbers(schedules, 'steps')),
    guidance: isFound('guidance') ? [] : alike('guidance', numbers(guidance.of, guidance.name)),
    references: image.flatMap((id) => literals(id, ['image'], 'string')),
  }
  const all = { ...slots, ...titled }
  const taken = (all.prompt ?? []).map(slotText)
  // One text node may serve both encoders.
  all.negative_prompt = all.negative_prompt?.filter((slot) => !taken.includes(slotText(slot))) ?? []
  const found = Object.entries(all).filter(([, each]) => each.length > 0)
  return { slots: Object.fromEntries(found.map(([name, each]) => [name, unique(each)])), problems, unclear }
}

/** Titles that nodes have for a slot, in lower case and with spaces: `negative prompt`. */
const TITLES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(Object.keys(INPUTS).map((name) => [name.replace('_', ' '), [name]])),
  size: ['width', 'height'],
  negative: ['negative_prompt'],
  reference: ['references'],
}

/** The slots of nodes that have the name of a slot as their title, such as `prompt` or `reference 2`. */
function titledSlots(workflow: Workflow): Readonly<Record<string, readonly Slot[]>> {
  const slots: Record<string, Slot[]> = {}
  const nodes = Object.entries(workflow).flatMap(([node, { _meta: meta }]) => {
    const words = String(meta?.title ?? '')
      .trim()
      .toLowerCase()
      .replaceAll(/[\s_-]+/g, ' ')
    const [, title = '', number = '0'] = /^(.*?)(?: (\d+))?$/.exec(words) ?? []
    const names = Object.hasOwn(TITLES, title) ? (TITLES[title] ?? []) : []
    return names.map((name) => ({ node, name, number: Number(number) }))
  })
  for (const { node, name } of nodes.toSorted((one, other) => one.number - other.number)) {
    const { names = [], type = '' } = INPUTS[name] ?? {}
    const inputs = names.flatMap((each) => literalSlot(workflow, { node, keys: [each] }, type) ?? [])
    const held = VALUE_INPUTS.map((each): Slot => ({ node, keys: [each] })).filter(
      (slot) => typeof valueAt(workflow, slot) === type,
    )
    const found = inputs.length > 0 ? inputs : held.slice(0, 1)
    if (found.length > 0) slots[name] = [...(slots[name] ?? []), ...found]
  }
  return slots
}

/** The value that the workflow itself has in a slot of one key. */
export const valueAt = (workflow: Workflow, { node, keys: [key = ''] }: Slot): unknown =>
  workflow[node]?.inputs[key]

/** Several inputs may get their value from the same node. */
const unique = (slots: readonly Slot[]): readonly Slot[] => [
  ...new Map(slots.map((slot) => [slotText(slot), slot])).values(),
]

/** Returns the frame rate that the workflow writes into its video, if it is one number. */
export function frameRateOf(workflow: Workflow): number | undefined {
  const rates = Object.keys(workflow).flatMap((node) =>
    ['fps', 'frame_rate'].flatMap((name) => {
      const slot = literalSlot(workflow, { node, keys: [name] }, 'number')
      return slot === undefined ? [] : [valueAt(workflow, slot)]
    }),
  )
  const [rate] = rates
  return typeof rate === 'number' && rates.every((each) => each === rate) ? rate : undefined
}

/**
 * Returns the first nodes that satisfy `isFound` on all paths against the links, starting with the inputs of `from`, whose
 * names match `first`.
 */
function reached(
  workflow: Workflow,
  from: readonly string[],
  input: RegExp,
  isFound: (id: string) => boolean,
  first = input,
): readonly string[] {
  const found = new Set<string>()
  const seen = new Set<string>()
  const waiting = [...from]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue
    seen.add(id)
    for (const [name, value] of Object.entries(workflow[id]?.inputs ?? {})) {
      const pattern = from.includes(id) ? first : input
      const next = pattern.test(name) ? linkedNode(workflow, value) : undefined
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
