/**
 * Finds the slots of a workflow without a document: the prompt by the titles of nodes, else from each sampler along its links
 * to the text encoders; the seeds; the reference images; the size by its title. A slot that is not unambiguous is a problem,
 * never a guess.
 */
import { linkedNode, nodeText, type Slot, valueAt, type Workflow } from './workflow.js'

export interface FoundSlots {
  readonly slots: Readonly<Record<string, readonly Slot[]>>
  readonly problems: readonly string[]
}

const SAMPLER = /sampler|guider/i
/** Inputs that lead from a sampler to the nodes with its prompt. */
const PROMPT_LINK = /^(positive|conditioning|text_embeds)/

/** The input of nodes that only hold a value. */
const VALUE_INPUTS = ['value', 'string', 'text']

type SlotName = keyof typeof INPUTS

/** By slot: the inputs of a node that may hold its value, and their type. */
const INPUTS = {
  prompt: {
    names: ['text', 'prompt', 'text_g', 'text_l', 'clip_l', 't5xxl', 'positive', 'positive_prompt'],
    type: 'string',
  },
  width: { names: ['width', 'empty_latent_width'], type: 'number' },
  height: { names: ['height', 'empty_latent_height'], type: 'number' },
  seed: { names: ['seed', 'noise_seed'], type: 'number' },
  references: { names: ['image'], type: 'string' },
}

/** Titles of nodes in lower case, without a number, and the slots that their nodes have. */
const TITLES = new Map<string, readonly SlotName[]>([
  ['prompt', ['prompt']],
  ['size', ['width', 'height']],
  ['reference', ['references']],
])

export function findSlots(workflow: Workflow): FoundSlots {
  const problems: string[] = []
  const ids = Object.keys(workflow)
  const titled = titledSlots(workflow, problems)
  const found: Partial<Record<SlotName, readonly Slot[]>> = { seed: slotsOf(workflow, ids, 'seed') }
  if (titled.prompt === undefined) {
    const encoders = encodersOf(workflow)
    found.prompt = slotsOf(workflow, encoders, 'prompt')
    // A base model and one that refines its picture may have the same text.
    const texts = new Set(found.prompt.map((slot) => valueAt(workflow, slot)))
    if (encoders.length > 1 && texts.size > 1) problems.push(severalText(workflow, encoders, 'the prompt'))
  }
  if (titled.references === undefined) {
    const used = new Set(ids.flatMap((id) => linksOf(workflow, id).map(([, source]) => source)))
    const images = ids.filter((id) => /^LoadImage/.test(workflow[id]?.class_type ?? '') && used.has(id))
    found.references = slotsOf(workflow, images, 'references')
    if (images.length > 1) problems.push(severalText(workflow, images, 'the reference image'))
  }
  const slots = Object.entries({ ...found, ...titled }).filter(([, each]) => each.length > 0)
  return { slots: Object.fromEntries(slots), problems }
}

/** The slots of nodes with a title such as `prompt` or `reference 2`, in the order of their numbers. */
function titledSlots(workflow: Workflow, problems: string[]): Partial<Record<SlotName, readonly Slot[]>> {
  const nodes = Object.entries(workflow).flatMap(([id, { _meta }]) => {
    const words = `${_meta?.title ?? ''}`.trim().toLowerCase()
    const [, title = '', number = '0'] = /^(.*?)(?: (\d+))?$/.exec(words) ?? []
    return (TITLES.get(title) ?? []).map((name) => ({ id, title, name, number: Number(number) }))
  })
  const slots: Partial<Record<SlotName, readonly Slot[]>> = {}
  for (const { id, title, name } of nodes.toSorted((one, other) => one.number - other.number)) {
    const own = slotsOf(workflow, [id], name)
    const found = own.length > 0 ? own : slotsOf(workflow, [id], name, VALUE_INPUTS).slice(0, 1)
    if (found.length === 0)
      problems.push(`has the title "${title}" on ${nodeText(workflow, id)}, which has no such input`)
    slots[name] = [...(slots[name] ?? []), ...found]
  }
  return slots
}

/** The nodes with the text of each sampler: the search passes on through other nodes. */
function encodersOf(workflow: Workflow): readonly string[] {
  const samplers = Object.keys(workflow).filter((id) => SAMPLER.test(workflow[id]?.class_type ?? ''))
  const found = new Set<string>()
  const passed = new Set(samplers)
  // The iteration of a set includes what is added during it.
  for (const id of passed)
    for (const [input, source] of linksOf(workflow, id))
      if (PROMPT_LINK.test(input))
        (slotsOf(workflow, [source], 'prompt').length > 0 ? found : passed).add(source)
  return [...found]
}

/** The inputs of a node that are links, each with the node that it is linked to. */
const linksOf = (workflow: Workflow, id: string): readonly (readonly [input: string, source: string])[] =>
  Object.entries(workflow[id]?.inputs ?? {}).flatMap(([input, value]) => {
    const source = linkedNode(workflow, value)
    return source === undefined ? [] : [[input, source] as const]
  })

const slotsOf = (
  workflow: Workflow,
  nodes: readonly string[],
  name: SlotName,
  inputs: readonly string[] = INPUTS[name].names,
): readonly Slot[] =>
  nodes.flatMap((node) =>
    inputs.flatMap((input) => literalSlot(workflow, { node, input }, INPUTS[name].type) ?? []),
  )

/** Returns the input if it holds a value of this type, or the input of the node that it is connected to. */
function literalSlot(workflow: Workflow, slot: Slot, type: string): Slot | undefined {
  // A seed may be larger than a number can have exactly.
  const isLiteral = (value: unknown) =>
    typeof value === type || (type === 'number' && typeof value === 'bigint')
  const value = valueAt(workflow, slot)
  const node = linkedNode(workflow, value)
  if (node === undefined) return isLiteral(value) ? slot : undefined
  const linked = [...VALUE_INPUTS, slot.input].map((input): Slot => ({ node, input }))
  return linked.find((each) => isLiteral(valueAt(workflow, each)))
}

function severalText(workflow: Workflow, nodes: readonly string[], what: string): string {
  const candidates = nodes.map((id) => `${id} ${workflow[id]?.class_type}`)
  return `has more than one node for ${what} (candidates: ${candidates.join(', ')})`
}
