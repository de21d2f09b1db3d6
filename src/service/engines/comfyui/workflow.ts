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

/** An input of a node. */
export interface Slot {
  readonly node: string
  readonly input: string
}

export interface SlotValue {
  readonly slot: Slot
  readonly value: unknown
}

export const slotText = ({ node, input }: Slot): string => `${node}.inputs.${input}`

/** "KSampler (node 5)" */
export const nodeText = (workflow: Workflow, id: string): string => {
  const node = Object.hasOwn(workflow, id) ? workflow[id] : undefined
  return node === undefined ? `node ${id}` : `${node.class_type} (node ${id})`
}

/** The value that the workflow itself has in a slot. */
export function valueAt(workflow: Workflow, { node, input }: Slot): unknown {
  const inputs = Object.hasOwn(workflow, node) ? (workflow[node]?.inputs ?? {}) : {}
  return Object.hasOwn(inputs, input) ? inputs[input] : undefined
}

/** Returns the node of a link (`["4", 0]`). */
export const linkedNode = (workflow: Workflow, value: unknown): string | undefined =>
  Array.isArray(value) && typeof value[0] === 'string' && Object.hasOwn(workflow, value[0])
    ? value[0]
    : undefined

export function parseWorkflow(text: string): Parsed<Workflow> {
  const json = parseJson(text)
  if (!json.ok) return wrong('is not a JSON file')
  const { value } = json
  if (isObject(value) && Array.isArray(value.nodes))
    return wrong('has the format of the editor. In ComfyUI, choose Workflow > Export (API)')
  const nodes = isObject(value) ? Object.entries(value) : []
  if (nodes.length === 0) return wrong('is not a workflow: it has no nodes')
  for (const [id, node] of nodes)
    if (!isObject(node) || typeof node.class_type !== 'string' || !isObject(node.inputs))
      return wrong(`is not a workflow for the API: "${id}" has no "class_type" or no "inputs"`)
  return { ok: true, value: value as Workflow }
}

const wrong = (text: string): { readonly ok: false; readonly wrong: string } => ({ ok: false, wrong: text })

/** Finds the slot that a text such as `6.inputs.text` names. A node within a subgraph is `12:3`. */
export function findSlot(workflow: Workflow, text: string): Parsed<Slot> {
  const [node = '', input = ''] = text.split(/\.inputs\.(.*)/s)
  if (valueAt(workflow, { node, input }) !== undefined) return { ok: true, value: { node, input } }
  if (!Object.hasOwn(workflow, node)) {
    const nodes = Object.keys(workflow).map((id) => `${id} ${workflow[id]?.class_type}`)
    return wrong(`names no node of the workflow (it has ${listText(nodes)})`)
  }
  const inputs = Object.keys(workflow[node]?.inputs ?? {}).map((name) => slotText({ node, input: name }))
  return wrong(`is not an input of ${nodeText(workflow, node)}, which has ${listText(inputs)}`)
}

const listText = (texts: readonly string[]): string =>
  `${texts.slice(0, MAX_LISTED).join(', ')}${texts.length > MAX_LISTED ? ' …' : ''}` || 'none'

const MAX_LISTED = 20

/** Returns a copy of the workflow with a value in each slot. */
export function filledWorkflow(workflow: Workflow, values: readonly SlotValue[]): Workflow {
  const filled: Record<string, WorkflowNode> = { ...workflow }
  for (const { slot, value } of values) {
    const node = filled[slot.node]
    if (node !== undefined) filled[slot.node] = { ...node, inputs: { ...node.inputs, [slot.input]: value } }
  }
  return filled
}
