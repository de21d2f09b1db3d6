/**
 * The console: the page of `rushes serve` for people who look at results and own the account. It knows the service only by
 * the endpoints of `protocol/console.ts`, asks them relative to its own address, and keeps nothing but the choice of colours.
 */
import { render } from 'preact'
import { App } from './app.js'
import { applyTheme } from './theme.js'

applyTheme()
const root = document.getElementById('app')
if (root !== null) render(<App />, root)
