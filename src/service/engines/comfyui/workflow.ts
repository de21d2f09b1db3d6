/**
 * A ComfyUI workflow as it is exported for the API: nodes by id. Slots are the inputs of its nodes that get the values
 * of a run.
 */
import { isObject, type Parsed, parseJson } from '../../../protocol/parse.js'

export interface WorkflowNode {
  readonly class_type: string
  /** A value, or a link to an output of another node: `["4", 0]`. */
  readonly inputs: Readonly<Record<string, unknown>>
  readonly _meta?: { readonly title?: unknown }
}

export type Workflow = Readonly<Record<string, WorkflowNode>>

/** Path of an input in the workflow: node, then the keys below `inputs`. */
export interface Slot {
  readonly node: string
  readonly keys: readonly string[]
}

export interface SlotValue {
  readonly slot: Slot
  readonly value: unknown
}

export const slotText = ({ node, keys }: Slot): string => `${node}.inputs.${keys.join('.')}`

/** "KSampler (node 5)" */
export const nodeText = (workflow: Workflow, id: string): string => {
  const node = Object.hasOwn(workflow, id) ? workflow[id] : undefined
  return node === undefined ? `node ${id}` : `${node.class_type} (node ${id})`
}

/** The value that the workflow itself has in a slot of one key. */
export function valueAt(workflow: Workflow, { node, keys: [key = ''] }: Slot): unknown {
  const inputs = workflow[node]?.inputs ?? {}
  return Object.hasOwn(inputs, key) ? inputs[key] : undefined
}

/** Returns the node of a link (`["4", 0]`). */
export const linkedNode = (workflow: Workflow, value: unknown): string | undefined =>
  Array.isArray(value) && typeof value[0] === 'string' && Object.hasOwn(workflow, value[0])
    ? value[0]
    : undefined

export function parseWorkflow(text: string): Parsed<Workflow> {
  const json = parseJson(text)
  if (!json.ok) return wrong('is not a JSON file')
  const value = unwrapped(json.value)
  if (isObject(value) && Array.isArray(value.nodes))
    return wrong('has the format of the editor. In ComfyUI, choose Workflow > Export (API)')
  const nodes = isObject(value) ? Object.entries(value) : []
  if (nodes.length === 0) return wrong('is not a workflow: it has no nodes')
  for (const [id, node] of nodes)
    if (!isObject(node) || typeof node.class_type !== 'string' || !isObject(node.inputs))
      return wrong(`is not a workflow for the API: "${id}" has no "class_type" or no "inputs"`)
  return { ok: true, value: value as Workflow }
}

/** Returns the workflow in the body of a request for ComfyUI, or for a service that runs it. */
function unwrapped(value: unknown): unknown {
  const isNode = (each: unknown) => isObject(each) && typeof each.class_type === 'string'
  if (!isObject(value) || Object.values(value).some(isNode)) return value
  const inner = [value.prompt, value.workflow, value.input].find(isObject)
  return inner === undefined ? value : unwrapped(inner)
}

const wrong = (text: string): { readonly ok: false; readonly wrong: string } => ({ ok: false, wrong: text })

/**
 * Finds the slot that a text such as `6.inputs.text` names. Ids of nodes (`12:3` within a subgraph)
 * and names of inputs (`images.image0`) may contain punctuation, so they are looked up in the workflow.
 */
export function findSlot(workflow: Workflow, text: string): Parsed<Slot> {
  const ids = Object.keys(workflow).filter((each) => text.startsWith(`${each}.`))
  const [node] = ids.sort((one, other) => other.length - one.length)
  if (node === undefined) {
    const nodes = Object.keys(workflow).map((id) => `${id} ${workflow[id]?.class_type}`)
    return wrong(`names no node of the workflow (it has ${listText(nodes)})`)
  }
  const inputs = workflow[node]?.inputs ?? {}
  const [first, ...rest] = text.slice(node.length + 1).split('.')
  const keys = first === 'inputs' && rest.length > 0 ? keysIn(inputs, rest) : undefined
  if (keys !== undefined) return { ok: true, value: { node, keys } }
  const paths = Object.keys(inputs).map((name) => slotText({ node, keys: [name] }))
  return wrong(`is not an input of ${nodeText(workflow, node)}, which has ${listText(paths)}`)
}

const listText = (texts: readonly string[]): string =>
  `${texts.slice(0, MAX_LISTED).join(', ')}${texts.length > MAX_LISTED ? ' …' : ''}` || 'none'

const MAX_LISTED = 20

/** Returns the keys of an existing value: one of the names may contain dots. */
function keysIn(value: unknown, names: readonly string[]): readonly string[] | undefined {
  if (names.length === 0) return []
  for (let length = names.length; length > 0; length--) {
    const key = names.slice(0, length).join('.')
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) continue
    const below = keysIn((value as Readonly<Record<string, unknown>>)[key], names.slice(length))
    if (below !== undefined) return [key, ...below]
  }
  return undefined
}

/** Returns a copy of the workflow with a value in each slot. */
export function filledWorkflow(workflow: Workflow, values: readonly SlotValue[]): Workflow {
  const copy = structuredClone(workflow)
  for (const { slot, value } of values) {
    let place: Record<string, unknown> = copy[slot.node]?.inputs ?? {}
    for (const key of slot.keys.slice(0, -1)) place = place[key] as Record<string, unknown>
    place[slot.keys.at(-1) ?? ''] = value
  }
  return copy
}
