/** The current page, from the fragment of the address. */
import { useLayoutEffect, useState } from 'preact/hooks'
import { parseRoute, type Route } from './routes.js'

export function useRoute(): Route {
  const [fragment, setFragment] = useState(location.hash)
  // An effect runs after the page is painted, or later in a hidden tab, and would miss a change before that.
  useLayoutEffect(() => {
    const onChange = () => setFragment(location.hash)
    window.addEventListener('hashchange', onChange)
    return () => window.removeEventListener('hashchange', onChange)
  }, [])
  return parseRoute(fragment)
}

/** Goes to a fragment of `linkTo`. `replace` adds no entry to the history: for filters. */
export function navigate(fragment: string, { replace = false } = {}): void {
  if (fragment === location.hash) return
  if (!replace) {
    location.hash = fragment
    return
  }
  history.replaceState(null, '', fragment)
  window.dispatchEvent(new HashChangeEvent('hashchange'))
}
