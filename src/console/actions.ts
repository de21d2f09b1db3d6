/**
 * What people have started, by name. It outlives the component that started it: whoever comes back finds it in progress, an answer
 * goes to a component that shows it now, and without one it is told. One of a name is in progress at a time, for each user.
 */
import { createUserStore, currentUser, type User, whenCurrent } from './session-store.js'

export interface ActionState {
  readonly isBusy: boolean
  /** What went wrong with the last one. */
  readonly error: unknown
}

const IDLE: ActionState = { isBusy: false, error: undefined }

export const actionStore = createUserStore<ReadonlyMap<string, ActionState>>(new Map())

export const actionState = (name: string): ActionState => actionStore.get().get(name) ?? IDLE

function put(name: string, state: ActionState, user: User): void {
  actionStore.set((states) => {
    const others = new Map(states)
    if (state === IDLE) others.delete(name)
    else others.set(name, state)
    return others
  }, user)
}

/** A component that shows an action. */
export interface ActionViewer {
  readonly name: string
  readonly user: User
  /** Takes the answer. */
  readonly onDone: (answer: unknown) => void
}

const viewers = new Set<ActionViewer>()

const viewerOf = (name: string, user: User): ActionViewer | undefined =>
  [...viewers].findLast((each) => each.name === name && each.user === user)

/** Returns the function that ends it. The last viewer takes the error along. */
export function addViewer(viewer: ActionViewer): () => void {
  const { name, user } = viewer
  viewers.add(viewer)
  return () => {
    viewers.delete(viewer)
    if (viewerOf(name, user) === undefined) clearError(name, user)
  }
}

function clearError(name: string, user: User): void {
  actionStore.set((states) => {
    const state = states.get(name)
    if (state === undefined || state.error === undefined) return states
    const others = new Map(states)
    others.delete(name)
    return others
  }, user)
}

export interface ActionHandlers<Answer> {
  /** Carries it out: sends a request, and changes stores by the answer. Draws nothing and goes nowhere. */
  act(): Promise<Answer>
  /** Tells what was done when no component shows the action any more. */
  onMissed?: ((answer: Answer) => void) | undefined
  /** Tells what went wrong when no component shows the action any more. */
  onMissedError(error: unknown): void
}

/** Resolves to whether it succeeded. Does nothing while one of that name is in progress. */
export async function runAction<Answer>(name: string, handlers: ActionHandlers<Answer>): Promise<boolean> {
  const user = currentUser()
  if (actionState(name).isBusy) return false
  put(name, { isBusy: true, error: undefined }, user)
  let answer: Answer
  try {
    answer = await handlers.act()
  } catch (error) {
    const isShown = viewerOf(name, user) !== undefined
    put(name, isShown ? { isBusy: false, error } : IDLE, user)
    // What one user started is not told to another.
    if (!isShown && user === currentUser()) handlers.onMissedError(error)
    return false
  }
  put(name, IDLE, user)
  const viewer = viewerOf(name, user)
  if (viewer !== undefined) viewer.onDone(answer)
  else whenCurrent(user, () => handlers.onMissed?.(answer))
  return true
}
