#!/usr/bin/env node
import('../dist/rushes.js').then(({ runProcess }) => runProcess())
