// Preloaded into a checker that cannot be told a header: every HTTP request it makes carries the key of HOLDFAST_KEY.
import http from 'node:http';
import { Agent, setGlobalDispatcher } from 'undici';

const authorization = `Bearer ${process.env.HOLDFAST_KEY}`;

const withKey = (dispatch) => (options, handler) => {
  const headers = Array.isArray(options.headers)
    ? [...options.headers, 'authorization', authorization]
    : { ...options.headers, authorization };
  return dispatch({ ...options, headers }, handler);
};

setGlobalDispatcher(new Agent().compose(withKey));

const plain = http.request;
http.request = (...given) => {
  const request = plain(...given);
  request.setHeader('authorization', authorization);
  return request;
};
