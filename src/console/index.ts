/** Turns the pages into HTML. */
import type { ComponentChildren, VNode } from 'preact'
import { renderToString } from 'preact-render-to-string'

export { AccountPage, type AccountView } from './account-page.js'
export { CreditsPage } from './credits-page.js'
export { linkTo } from './format.js'
export { KeyFormPage, KeysPage, type KeyValues, type ShownKey } from './keys-page.js'
export type { Assets, Frame } from './layout.js'
export { MAX_COUNT, NewRunPage, type NewRunView, Price, type Values } from './new-run-page.js'
export type { KeyChoice, ShownRun } from './parts.js'
export { RunPage, type RunView, StateAnswer } from './run-page.js'
export { LiveAnswer, type RunsLayout, RunsPage } from './runs-page.js'
export { LinkPage, MessagePage, SignInPage } from './sign-in-page.js'

type Component<Props> = (props: Props) => ComponentChildren

/** A whole page. */
export const renderPage = <Props>(page: Component<Props>, props: Props): string =>
  `<!doctype html>${renderPart(page, props)}`

/** A part of a page. */
export const renderPart = <Props>(part: Component<Props>, props: Props): string =>
  renderToString(part(props) as VNode)
